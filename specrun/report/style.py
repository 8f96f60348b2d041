"""The style sheet of a report: light and dark, screen of any width, paper."""

STYLE = """
:root{color-scheme:light dark;--bg:#fff;--ink:#1b1f24;--soft:#57606a;--rule:#d0d7de;--pale:#f3f5f7;--link:#0550ae;
--target:#1f5fa8;--pair:#c4500b;--aa:#4a8ccc;--matched:#1b7f5c;--other:#8250a8;--limit:#57606a;
--good:#116329;--bad:#a40e26;--open:#7d4e00;--goodbg:#dff5e3;--badbg:#ffe3e6;--openbg:#fdf0d0;--heat:196,80,11}
@media screen and (prefers-color-scheme:dark){:root{--bg:#12161b;--ink:#e3e8ee;--soft:#9aa5b1;--rule:#343c46;--pale:#1b2128;
--link:#79b8ff;
--target:#6cb0f5;--pair:#f0944d;--aa:#4a78ab;--matched:#4fc79b;--other:#c39be8;--limit:#9aa5b1;
--good:#7ee2a0;--bad:#ff9aa5;--open:#f0c674;--goodbg:#143322;--badbg:#43181e;--openbg:#3a2d0d;--heat:240,148,77}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0 auto;max-width:62rem;padding:1.5rem 1.25rem 4rem;background:var(--bg);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .5rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:0 0 .6rem;padding-top:.7rem;border-top:1px solid var(--rule)}
p{margin:.4rem 0;max-width:46rem}
a{color:var(--link)}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
section{margin-top:2.2rem;scroll-margin-top:1rem}
.kicker,figcaption,.note,footer,caption,small{color:var(--soft)}
.kicker{margin:0}
.outcome{display:inline-block;padding:.35rem .7rem;border-radius:.4rem;font-weight:600}
.outcome.met{background:var(--goodbg);color:var(--good)}
.outcome.not-met,.outcome.not-established{background:var(--badbg);color:var(--bad)}
.outcome.undecided{background:var(--openbg);color:var(--open)}
.facts{list-style:none;padding:0;margin:.5rem 0;color:var(--soft);font-size:.9rem;overflow-wrap:anywhere}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1rem;padding:.6rem 0;margin:1rem 0 0;
border-block:1px solid var(--rule);font-size:.9rem}
.skip{position:absolute;left:-100vw}
.skip:focus{left:1rem;top:.5rem;background:var(--bg);padding:.3rem .6rem;z-index:1}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.scroll{overflow-x:auto;position:relative;margin:.6rem 0}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums;width:100%}
caption{text-align:left;font-weight:600;padding:.3rem 0;color:var(--ink)}
th,td{text-align:left;vertical-align:top;padding:.3rem .7rem .3rem 0;border-bottom:1px solid var(--rule);font-weight:400}
thead th{font-weight:600;color:var(--soft);vertical-align:bottom}
td.short{white-space:nowrap}
#verdict-table td:nth-child(7){min-width:11rem}
.verdict{font-weight:600;white-space:nowrap}
.verdict.met{color:var(--good)}.verdict.not-met{color:var(--bad)}.verdict.undecided{color:var(--open)}
figure{margin:.6rem 0 0}
figcaption{font-size:.88rem;max-width:46rem}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{font-size:11px;fill:var(--soft);stroke:none}
svg .mid{text-anchor:middle}svg .to{text-anchor:end}svg .from{text-anchor:start}
svg text.label{fill:var(--c)}
.grid{stroke:var(--rule);stroke-width:.7}
.one{stroke:var(--ink);stroke-width:1}
.bound{stroke:var(--ink);stroke-width:1.4;stroke-dasharray:3 2}
.line{stroke:var(--c);stroke-width:1.8;fill:none}
.curve.arm-target{stroke-dasharray:5 2}
.mark{fill:var(--c)}
.block{fill:var(--soft);opacity:.65}
.starting{fill:var(--c);opacity:.25}
.voided{fill:var(--bg);stroke:var(--bad);stroke-width:1.6}
.arm-target{--c:var(--target)}.arm-pair{--c:var(--pair)}.arm-aa{--c:var(--aa)}.arm-matched{--c:var(--matched)}
.arm-other{--c:var(--other)}.arm-limit{--c:var(--limit)}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.88rem}
.key::before{content:"";display:inline-block;width:.8em;height:.8em;border-radius:.2em;margin-right:.4em;background:var(--c)}
.panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr));gap:.8rem 1.4rem}
.title{font-size:.88rem;font-weight:600;margin:.4rem 0 0}
.strips{margin:.9rem 0 0;table-layout:fixed}
.strips th,.strips td{padding:.1rem .6rem .1rem 0;vertical-align:middle;border-bottom:0}
.strips tbody tr:nth-child(odd){background:var(--pale)}
.strips th:first-child{width:26%;padding-left:.4rem}.strips th:last-child,.strips td.value{width:26%}
.map{width:auto}.map td,.map th{padding:.25rem .6rem;border:1px solid var(--rule);white-space:nowrap}
.few{color:var(--soft)}
.shade-1{background:rgba(var(--heat),.07)}.shade-2{background:rgba(var(--heat),.14)}.shade-3{background:rgba(var(--heat),.21)}
.shade-4{background:rgba(var(--heat),.28)}.shade-5{background:rgba(var(--heat),.35)}.shade-6{background:rgba(var(--heat),.42)}
.shade-7{background:rgba(var(--heat),.5)}.shade-8{background:rgba(var(--heat),.58)}.shade-9{background:rgba(var(--heat),.66)}
details{margin:.6rem 0}
summary{cursor:pointer;color:var(--link)}
li{max-width:52rem;margin:.15rem 0;overflow-wrap:anywhere}
pre{overflow-x:auto;background:var(--pale);padding:.6rem;border-radius:.4rem;font-size:.82rem;white-space:pre-wrap;overflow-wrap:anywhere}
code{font-size:.85em;overflow-wrap:anywhere}
footer{margin-top:3rem;font-size:.85rem;border-top:1px solid var(--rule)}
@media(max-width:38rem){body{padding:1rem .9rem 3rem}
table{font-size:.8rem}
.strips,.strips caption,.strips thead,.strips tbody{display:block}
#verdict-table,#verdict-table caption,#verdict-table tbody{display:block}
#verdict-table thead{position:absolute;clip-path:inset(50%)}
#verdict-table tr{display:grid;grid-template-columns:7.6em 1fr auto;gap:.1rem .5rem;padding:.35rem 0}
#verdict-table th,#verdict-table td{border:0;padding:0}
#verdict-table tr>th{border-top:0}
#verdict-table td:empty,#verdict-table .same{display:none}
#verdict-table tbody tr:not(:first-child):has(th){border-top:1px solid var(--rule)}
#verdict-table tr>:nth-child(2){grid-column:2/4}
#verdict-table tr>:nth-child(3){grid-column:1/4;color:var(--soft)}
#verdict-table tr>:nth-child(7){grid-column:1/4;min-width:0}
.strips tr{display:grid;grid-template-columns:1fr auto;padding:.15rem 0}
.strips th:first-child,.strips th:last-child,.strips td.value{width:auto;padding:.1rem .3rem}
.strips tr>:nth-child(2){grid-row:2;grid-column:1/3;padding:0}}
@media print{body{max-width:none;font-size:10pt;padding:0;print-color-adjust:exact}
nav,.skip{display:none}section,figure,.panel{break-inside:avoid-page}.panels{grid-template-columns:1fr 1fr}
h2{break-after:avoid}.scroll{overflow:visible}summary{list-style:none;color:var(--soft)}
details::details-content{content-visibility:visible;display:block}}
"""
