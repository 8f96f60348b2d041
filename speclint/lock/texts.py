"""Fixed texts that both tokenizers of a pair encode: where ids agree, they show whether text is also split alike.

The list is part of the lock's format: change it only together with the format's number.
"""

from __future__ import annotations

from collections.abc import Sequence

TEXTS = (
    "The harbour lay quiet under snow, and nobody spoke.",
    "It's what they've said: we'll go, don't wait.",
    "HELLO World iPhone McDonald NASA's eBay",
    "one  two   three    four     five",
    " leading space",
    "trailing space ",
    "\ttab\tbetween\twords",
    "first line\nsecond line\n\nfourth line\n\n\n\nend",
    "windows line\r\nending\r\n",
    "non\u00a0breaking\u202fand\u3000wide spaces",
    "zero\u200bwidth and soft\u00adhyphen",
    "\ufefftext behind a byte-order mark",
    "0 1 12 123 1234 12345 1234567890",
    "3.14159 -2.5e-10 1,234,567.89 $19.99 50%",
    "2024-02-29T23:59:59Z 192.168.0.1 555-0199",
    "½ ² ① Ⅷ ٤٢ 四十二",
    "def area(width, height):\n    return width * height  # square units",
    "if (x != null && y >= 0) { return x->next[i++]; }",
    "for name in names:\n\tprint(f'{name!r}: {len(name):>4}')",
    '{"key": [1, 2.0, null, true], "nested": {"a": "b\\n"}}',
    "<div class=\"item\" id='x'>&amp;&#39;</div>",
    "SELECT * FROM users WHERE name LIKE '%o''brien%';",
    "https://example.org/path/to?query=1&other=two#part",
    "C:\\Users\\name\\file_name-v2.tar.gz ~/.config/app",
    "snake_case camelCase PascalCase kebab-case SCREAMING_CASE",
    "## Heading\n\n* item **bold** `code`\n1. first\n",
    "|a|b|\n|---|---|\n|1|2|",
    r"\frac{a}{b} \leq \sum_{i=0}^{n} x_i^2",
    "!!! ??? ... --- ___ === *** ((( )))",
    "“curly” ‘quotes’ — dash – en … ellipsis",
    "naïve café Ångström résumé",
    "nai\u0308ve cafe\u0301 A\u030angstro\u0308m",
    "ﬁne ﬂow ｆｕｌｌｗｉｄｔｈ ＡＢＣ１２３",
    "Straße GROẞ İstanbul ıssız ǅ",
    "Zażółć gęślą jaźń, žluťoučký kůň",
    "Быстрая коричневая лиса прыгает",
    "Η γρήγορη καφέ αλεπού",
    "敏捷的棕色狐狸跳过了懒狗。",
    "いろはにほへと ちりぬるを カタカナ",
    "빠른 갈색 여우가 뛰어넘는다",
    "البُنّي السريع قفز فوق الكلب",
    "השועל החום המהיר קופץ",
    "तेज़ भूरी लोमड़ी कूदती है",
    "สุนัขจิ้งจอกสีน้ำตาลกระโดด",
    "Con cáo nâu nhanh nhẹn nhảy qua",
    "😀 🎉🎉 👍🏽 👩‍👩‍👧‍👦 🇺🇳 ❤️",
    "∀x∈ℝ: x² ≥ 0 → ∃y ≤ x",
    "\U00010348 \U0001d54f \x01\x7f",
)


def encode_differently(ours: Sequence[Sequence[int]], theirs: Sequence[Sequence[int]]) -> dict[str, object]:
    """How many of `TEXTS` the two tokenizers encode to other ids, and the first of them with both numbers of tokens."""
    differing = [i for i, (left, right) in enumerate(zip(ours, theirs, strict=True)) if list(left) != list(right)]
    facts: dict[str, object] = {"compared": len(TEXTS), "differ": len(differing)}
    if differing:
        at = differing[0]
        facts["first"] = {"text": TEXTS[at], "target_tokens": len(ours[at]), "draft_tokens": len(theirs[at])}
    return facts
