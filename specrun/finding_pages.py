"""The manual of findings: what each says, what it rests on, what to look at. `specrun explain DX05` prints a page."""

from __future__ import annotations

import re
import textwrap
from typing import NamedTuple


class Page(NamedTuple):
    """`title` is one sentence; `rests_on` says which figures and which rule; `look` what a reader does with it."""

    title: str
    rests_on: str
    look: str


MANUAL = """
DX01 Diagnosis withheld: figures that must agree do not, or too few blocks have step times.

Relations that hold in every healthy window: accepted tokens lie within draft tokens and these within K × drafts; accepted
tokens by position sum to all accepted and do not rise; drafts do not exceed decode steps; a step yields from 1 to K + 1
tokens and exactly 1 in the target; the client's decode time is the server's histogram (3 % or 0.3 ms a token on a GPU, 20 %
on a CPU shared with the client); tokens in chunks are the tokens of usage; Little's law (3 %). The text names block, arm,
relation, value and bounds. Figures and verdicts stay; nothing is concluded about causes.

Look at: The relation that is named. A client clock off the histogram: the client's processor. Counters against tokens:
other traffic on the server, an engine that was replaced, a release whose counters mean something else.

DX02 Decode is faster: a step yields more tokens than it costs target steps.

Decode ratio q = B / g per block, from the server's inter-token histogram (one observation per request and decode step): B =
step time of the pair / step time of the target, g = (output tokens − requests) / decode steps. Said when the whole interval
of q over blocks is below 1.

Look at: DX08 for how much of it reaches the request, DX05 for the distance from break-even.

DX03 Decode is slower: a step costs more target steps than it yields tokens.

As DX02, with the whole interval of q above 1.

Look at: DX06 first: if even perfect drafts would lose, the cost of a step is the cause. Otherwise DX11 and DX12.

DX04 Decode: these blocks do not tell faster from slower.

As DX02, with 1 inside the interval of q. It is not a finding of equality.

Look at: The width of the interval, DX24 for the noise of this machine, and the distance that the blocks can decide.

DX05 Break-even length: tokens a step must yield to pay for itself, against those it yields and could yield.

B with its interval, g, and K + 1, the most that a step can yield. Mean accepted length by the counters (1 + accepted /
drafts) stands beside g and is another quantity: it leaves out steps without a draft and takes in tokens accepted past a
request's limit. The extra time of a step is draft and verification together; one equation does not divide it.

Look at: g below B: decode loses. B above K + 1: no draft can win at this step cost. Below it nothing is promised, because
with more accepted tokens requests end sooner and batches change.

DX06 Even with every draft token accepted, decode would be slower at the measured step cost.

The lower bound of B over blocks exceeds K + 1.

Look at: The cost of a step, not the draft's quality: the draft's size and layers, its tensor parallelism, graph mode and
runner of the pair's arm (DX17 with a matched control), the load.

DX07 Even with every draft token accepted, requests would take longer at the measured costs.

The lower bound over blocks of φ r + (1 − φ) B / (K + 1) exceeds 1: φ is the share of first-token time in the target's
request duration, r the ratio of first-token times.

Look at: DX08: whether it is the first token or the decode step.

DX08 How the change of request duration divides into first token and decode.

R − 1 = φ (r − 1) + (1 − φ)(q − 1), exact for equal tokens; both parts are means over blocks.

Look at: A large first-token part: the draft's own prefill, waiting (DX20), lock-step (DX16), prefix caching.

DX09 At one concurrency some workloads gain and others lose.

Request duration ratios by the client's clock, each with its interval wholly below or wholly above 1.

Look at: Which of these workloads is yours; a mean over them says nothing about either.

DX10 One workload gains at one concurrency and loses at another.

The same intervals, between neighbouring levels of which each is decided. Undecided levels between them are where the sign
turns.

Look at: The levels at which you serve. Levels between the two narrow the turning point.

DX11 Fewer draft tokens are accepted than the step cost needs: look at the match of draft, target and task.

Said where decode is not faster and perfect drafts could win. The needed rate is (B − 1) / K; for lookup methods the share
of steps that had a draft stands beside it.

Look at: How well the draft fits target and task: training data, tokenizer, chat template, prompts, sampling. For lookup
methods: how much the answers repeat what came before. Drafting further ahead does not mend it: later positions are accepted
less.

DX12 Acceptance falls off at a draft position.

Acceptance of a position given that all before it were accepted, under half the mean of the positions before.

Look at: Heads trained for fewer positions than K, a draft fed its own guesses; positions from there on cost time and bring
few tokens.

DX13 Requests were preempted: the KV cache was too small for the load.

The engine's preemption counter over the measured windows, and the KV capacity of both arms.

Look at: Weights and KV cache of the draft take memory from the target's cache: gpu_memory_utilization, max_num_seqs,
max_model_len, or a lower concurrency.

DX14 Greedy answers of pair and target differ.

Token ids of the same prompts. The floor is the target against itself at another batch shape, because shapes change which of
two near ties wins. Beyond the floor: Fisher's exact test, one-sided, at 2.5 %. Of the answers that the target scored, how much
likelier it finds its own token where they first differ: near 0 is a tie.

Look at: Within the floor: near ties. Beyond it: verification that keeps drafts it should refuse, sampling parameters that
one arm ignores, a defect of this release; compare answers before any figure of speed.

DX15 The API server's process was the limit, which hides differences between the arms.

Processor time of the API server above 90 % of one core over the window.

Look at: More API server processes, or a lower level. The pair sends fewer chunks for the same tokens and is flattered.

DX16 Requests of one arm come in lock-step, so TTFT does not compare.

Share of sends within one step time of another, less the share that as many sends at random times would have; the arms
differ by more than 0.2.

Look at: `output.spread`: equal lengths end in the same step and prefill together. TTFT criteria are undecided.

DX17 How much of the ratio is the engine's configuration under speculation, and how much speculation itself.

matched / target and pair / matched, whose product is pair / target. The matched control is the target with the runner,
scheduling and token budget that speculation forces on the pair.

Look at: A large matched part: the release's limits for this method, which a later release may lift.

DX18 Windows in which nothing was drafted.

The draft counter of lookup methods did not move in a cell and block.

Look at: The answers had nothing to look up. It is a fact about the workload and no fallback.

DX19 What a step costs before its first draft token, and what every draft token adds.

Only with a sweep, whose arms are the second equation: per block the least-squares line of step time over K, its intercept
and slope with intervals over blocks. The slope is drafting one more token and verifying it; the intercept less the target's
step is what speculation costs however little is drafted.

Look at: A large slope: the draft model. A large intercept: runner, graphs, synchronisation.

DX20 Requests waited in the engine's queue before they were scheduled.

Mean time in the waiting phase by the engine's own histogram, above 5 % of the mean TTFT in either arm.

Look at: max_num_seqs, KV capacity and token budget of the arm that waits; the part of TTFT that waits is not prefill.

DX21 Acceptance drops with the load.

Acceptance at neighbouring concurrency levels of one workload: down by more than a third, and the interval over blocks of
their ratio below 1. The same prompts are drafted for at every level, so acceptance should hardly depend on it.

Look at: A fault of the engine until shown otherwise: asynchronous scheduling with stale drafts, a batch limit of the
drafter, draft slots that are shared between requests.

DX22 Hardly any first draft token is accepted.

Under 2 % at draft position 1, where a draft that knows the language of its target reaches tens of percent.

Look at: Token ids that mean other strings in draft and target, a reduced draft vocabulary without its map, an untrained or
missing head, a head of another kind than the method, quantization that differs, another chat template.

DX23 The counters accepted more tokens than were delivered.

Decode steps + accepted − (output tokens − requests), over the tokens delivered after each request's first; above 5 %. A
draft accepted past the end of an answer is counted and not sent.

Look at: Short answers and large K make it large. Acceptance is judged here on delivered tokens; figures from counters alone
are higher.

DX24 Noise floor: how far the target differs from its own second start.

With control `aa`: the standard deviation over blocks of the log ratio of request durations aa / target, with its chi-square
interval, beside that of pair / target. It changes no verdict.

Look at: A floor as wide as the effect: more blocks, a quieter machine. A pair much wider than the floor: acceptance differs
from start to start or prompt to prompt.

DX25 Open loop: more requests were due than an arm completes.

Mean number of requests in flight in the second half of the arrivals over that in the first, mean over blocks: above 2. A
steady load gives 1 and a little more, because the window starts empty; a queue that only grows gives 3.

Look at: Which arms it names. If one, the other has the larger capacity at this rate, and by how much its latency is lower
depends on the window's length; goodput says more. If both, a lower rate.

"""


def _page(text: str) -> Page:
    title, rests_on, look = (" ".join(part.split()) for part in text.strip().split("\n\n"))
    return Page(title, rests_on, look.removeprefix("Look at: "))


PAGES = {code: _page(text) for code, text in re.findall(r"^(DX\d\d) (.*?)(?=^DX|\Z)", MANUAL, re.MULTILINE | re.DOTALL)}


def page(code: str) -> str:
    """The manual page of one finding as text. Raises KeyError for an unknown code."""
    found = PAGES[code]
    paragraphs = (f"{code}: {found.title}", f"Rests on: {found.rests_on}", f"Look at: {found.look}")
    return "\n\n".join(textwrap.fill(paragraph, 100) for paragraph in paragraphs)
