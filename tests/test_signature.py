"""Both verifiers on a table of forgeries, the trust files, and every leaf of a signed result."""

from __future__ import annotations

import base64
import copy
import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from trust_sample import ALICE, BOB, SPEC, make_key, public, result

from speclint import document, signature, signers, sshsig
from speclint.canonical import canonical
from speclint.signature import NAMESPACES, Outcome, Trust, load_trust, statement, verify_entry, verify_openssh, verify_strict
from specrun.sign import sign

NAMESPACE = NAMESPACES["result"]
MESSAGE = b'{"what":"was signed"}'
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2))


def field(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value


def blob_of(key: Ed25519PrivateKey, kind: bytes = b"ssh-ed25519") -> bytes:
    return field(kind) + field(key.public_key().public_bytes_raw())


def line_of(key: Ed25519PrivateKey) -> str:
    return "ssh-ed25519 " + base64.b64encode(blob_of(key)).decode()


def forge(
    key: Ed25519PrivateKey = KEY,
    message: bytes = MESSAGE,
    *,
    namespace: bytes = NAMESPACE.encode(),
    magic: bytes = b"SSHSIG",
    version: int = 1,
    outer: bytes | None = None,
    reserved: bytes = b"",
    hash_name: bytes = b"sha512",
    hashed: Callable[[bytes], bytes] = lambda message: hashlib.sha512(message).digest(),
    inner: bytes = b"ssh-ed25519",
    cut: int = 0,
    tail: bytes = b"",
    inner_tail: bytes = b"",
) -> bytes:
    """An SSHSIG blob, right unless something is asked to be wrong; what is wrong is signed along."""
    signed = b"SSHSIG" + field(namespace) + field(b"") + field(hash_name) + field(hashed(message))
    made = field(inner) + field(key.sign(signed)) + inner_tail
    head = magic + version.to_bytes(4, "big") + field(outer or blob_of(key)) + field(namespace) + field(reserved)
    blob = head + field(hash_name) + field(made) + tail
    return blob[: len(blob) - cut]


def armour(blob: bytes) -> str:
    text = base64.b64encode(blob).decode()
    lines = [text[at : at + 70] for at in range(0, len(text), 70)]
    return "\n".join(["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""])


def md5(message: bytes) -> bytes:
    return hashlib.md5(message, usedforsecurity=False).digest()


def sha(name: str) -> Callable[[bytes], bytes]:
    return lambda message: hashlib.new(name, message).digest()


def trust_of(folder: Path, signers: str, revoked: str | None = None) -> Trust:
    (folder / "allowed_signers").write_text(signers)
    if revoked is not None:
        (folder / "revoked").write_text(revoked)
    return Trust(folder / "allowed_signers", folder / "revoked" if revoked is not None else None)


LISTED = f'{ALICE} namespaces="{NAMESPACE}" {line_of(KEY)}\n'
GOOD = armour(forge())

# name: (signature, code expected)
FORGERIES: dict[str, tuple[str, str]] = {
    "as it should be": (GOOD, ""),
    "without the last line break": (GOOD.rstrip("\n"), ""),
    "other message": (armour(forge(message=b"other")), "SL602"),
    "other namespace": (armour(forge(namespace=b"pair-spec-approval")), "SL602"),
    "namespace with a NUL": (armour(forge(namespace=NAMESPACE.encode() + b"\0")), "SL602"),
    "hash md5": (armour(forge(hash_name=b"md5", hashed=md5)), "SL602"),
    "hash sha1": (armour(forge(hash_name=b"sha1", hashed=sha("sha1"))), "SL602"),
    "hash sha256": (armour(forge(hash_name=b"sha256", hashed=sha("sha256"))), "SL602"),
    "hash SHA512 in capitals": (armour(forge(hash_name=b"SHA512")), "SL602"),
    "hash shake_128": (armour(forge(hash_name=b"shake_128", hashed=lambda m: hashlib.shake_128(m).digest(64))), "SL602"),
    "hash sha384 called sha512": (armour(forge(hashed=sha("sha384"))), "SL602"),
    "inner type is another": (armour(forge(inner=b"ssh-rsa")), "SL602"),
    "outer type is another": (armour(forge(outer=blob_of(KEY, b"ssh-rsa"))), "SL602"),
    "outer key is another": (armour(forge(outer=blob_of(OTHER))), "SL602"),
    "outer key with a tail": (armour(forge(outer=blob_of(KEY) + b"x")), "SL602"),
    "outer key cut": (armour(forge(outer=blob_of(KEY)[:-1])), "SL602"),
    "other magic": (armour(forge(magic=b"SSHSIC")), "SL602"),
    "version 2": (armour(forge(version=2)), "SL602"),
    "version 0": (armour(forge(version=0)), "SL602"),
    "reserved field in use": (armour(forge(reserved=b"x")), "SL602"),
    "truncated by one": (armour(forge(cut=1)), "SL602"),
    "truncated by a field": (armour(forge(cut=87)), "SL602"),
    "trailing byte": (armour(forge(tail=b"x")), "SL602"),
    "trailing byte in the signature": (armour(forge(inner_tail=b"x")), "SL602"),
    "empty": ("", "SL602"),
    "no armour": (base64.b64encode(forge()).decode(), "SL602"),
    "text before": ("x\n" + GOOD, "SL602"),
    "text after": (GOOD + "x\n", "SL602"),
    "two signatures": (GOOD + GOOD, "SL602"),
    "CRLF": (GOOD.replace("\n", "\r\n"), "SL602"),
    "blank in the base64": (GOOD.replace("U1NI", "U1N I", 1), "SL602"),
    "look-alike letter in the armour": (GOOD.replace("BEGIN", "B\u0395GIN", 1), "SL602"),
    "another's key": (armour(forge(OTHER)), "SL603"),
}


def agree(armored: str, trust: Trust, principal: str = ALICE, at: datetime | None = NOW, message: bytes = MESSAGE) -> Outcome:
    """The outcome of both verifiers, which must be the same."""
    ours = verify_strict(message, armored, NAMESPACE, principal, trust, at)
    theirs = verify_openssh(message, armored, NAMESPACE, principal, trust, at)
    assert (ours.ok, ours.code, ours.fingerprint) == (theirs.ok, theirs.code, theirs.fingerprint), (ours, theirs)
    return theirs


@pytest.mark.parametrize("name", FORGERIES)
def test_both_verifiers_agree_on_forgeries(name: str, tmp_path: Path) -> None:
    armored, code = FORGERIES[name]
    outcome = agree(armored, trust_of(tmp_path, LISTED))
    assert (outcome.code, outcome.ok) == (code, not code), outcome


def flips() -> Iterator[bytes]:
    blob = forge()
    for at in range(len(blob)):
        yield blob[:at] + bytes([blob[at] ^ 1 << at % 8]) + blob[at + 1 :]


def test_a_flipped_bit_in_any_byte_of_any_field_is_refused(tmp_path: Path) -> None:
    trust, tried = trust_of(tmp_path, LISTED), 0
    for blob in flips():
        assert not agree(armour(blob), trust).ok
        tried += 1
    assert tried == len(forge())


def test_base64_has_one_spelling() -> None:
    good = armour(forge(namespace=b"nn"))
    assert sshsig.parse(good).namespace == "nn"
    assert "=\n" in good
    at = good.index("=") - 1
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    other = letters[letters.index(good[at]) ^ 1]
    assert base64.b64decode("".join((good[:at] + other + good[at + 1 :]).split("\n")[1:-2])) == forge(namespace=b"nn")
    with pytest.raises(sshsig.Malformed, match="canonical"):
        sshsig.parse(good[:at] + other + good[at + 1 :])


def test_a_day_that_is_not_in_the_calendar_allows_nothing_without_openssh(tmp_path: Path) -> None:
    # OpenSSH reads 30 February as 2 March; the strict verifier does not guess.
    trust = trust_of(tmp_path, f'{ALICE} valid-before="20270230" {line_of(KEY)}\n')
    assert not verify_strict(MESSAGE, GOOD, NAMESPACE, ALICE, trust, NOW).ok


def test_openssh_itself_accepts_whatever_the_strict_verifier_accepts(tmp_path: Path) -> None:
    trust_of(tmp_path, LISTED)
    file = tmp_path / "signature"
    for name, (armored, code) in FORGERIES.items():
        file.write_text(armored, encoding="utf-8")
        command = ["ssh-keygen", "-Y", "verify", "-f", "allowed_signers", "-I", ALICE, "-n", NAMESPACE, "-s", str(file)]
        done = subprocess.run(command, input=MESSAGE, capture_output=True, cwd=tmp_path)
        assert code or done.returncode == 0, name


# name: (allowed signers, revoked keys, principal, ok, words of the reason)
LISTS: dict[str, tuple[str, str | None, str, bool, str]] = {
    "listed": (LISTED, None, ALICE, True, "signed by"),
    "nobody listed": ("# nobody\n\n", None, ALICE, False, "is not listed"),
    "wrong principal": (LISTED, None, BOB, False, "is listed for alice@example.com, not for bob@example.com"),
    "has another key": (f"{ALICE} {line_of(OTHER)}\n", None, ALICE, False, "who has another key"),
    "second line counts": (f"{ALICE} {line_of(OTHER)}\n{LISTED}", None, ALICE, True, ""),
    "principal pattern": (f"*@example.com {line_of(KEY)}\n", None, ALICE, True, ""),
    "pattern of another host": (f"*@example.org {line_of(KEY)}\n", None, ALICE, False, "is listed for *@example.org"),
    "excluded by a pattern": (f"*@example.com,!alice@* {line_of(KEY)}\n", None, ALICE, False, ""),
    "quoted principals": (f'"{BOB},{ALICE}" {line_of(KEY)} comment\n', None, ALICE, True, ""),
    "capitals differ": (f"Alice@example.com {line_of(KEY)}\n", None, ALICE, False, ""),
    "other namespace": (f'{ALICE} namespaces="git,file" {line_of(KEY)}\n', None, ALICE, False, 'allows namespaces "git,file"'),
    "namespace pattern": (f'{ALICE} namespaces="git,pair-spec-*" {line_of(KEY)}\n', None, ALICE, True, ""),
    "option in capitals": (f'{ALICE} NameSpaces="{NAMESPACE}" {line_of(KEY)}\n', None, ALICE, True, ""),
    "expired": (f'{ALICE} valid-before="20260101" {line_of(KEY)}\n', None, ALICE, False, "expired 2026-01-01"),
    "not yet expired": (f'{ALICE} valid-before="20261130120000Z" {line_of(KEY)}\n', None, ALICE, True, ""),
    "expired a second ago": (f'{ALICE} valid-before="20261130115959Z" {line_of(KEY)}\n', None, ALICE, False, "expired"),
    "not yet valid": (f'{ALICE} valid-after="202701010000" {line_of(KEY)}\n', None, ALICE, False, "valid from 2027-01-01"),
    "in its time": (f'{ALICE} valid-after="20260101Z",valid-before="20270101" {line_of(KEY)}\n', None, ALICE, True, ""),
    "times swapped": (f'{ALICE} valid-after="20270101",valid-before="20260101" {line_of(KEY)}\n', None, ALICE, False, ""),
    "times equal": (
        f'{ALICE} valid-after="20261130120000",valid-before="20261130120000" {line_of(KEY)}\n',
        None,
        ALICE,
        False,
        "",
    ),
    "unknown option with a value": (f'{ALICE} bogus="x" {line_of(KEY)}\n', None, ALICE, False, ""),
    "no time": (f'{ALICE} valid-before="soon" {line_of(KEY)}\n', None, ALICE, False, ""),
    "unknown option": (f"{ALICE} bogus {line_of(KEY)}\n", None, ALICE, False, ""),
    "option twice": (f'{ALICE} namespaces="*",namespaces="*" {line_of(KEY)}\n', None, ALICE, False, ""),
    "unclosed quote": (f'{ALICE} namespaces="* {line_of(KEY)}\n', None, ALICE, False, ""),
    "certificate authority": (f"{ALICE} cert-authority {line_of(KEY)}\n", None, ALICE, False, "certificate authority"),
    "line without key": (f"{ALICE}\n{ALICE} garbage\n", None, ALICE, False, ""),
    "bad line, then a good one": (f"{ALICE} garbage\n{LISTED}", None, ALICE, True, ""),
    "key type in the line differs": (LISTED.replace("ssh-ed25519", "ssh-rsa"), None, ALICE, False, ""),
    "indented, tabs": (f'\t{ALICE}\tnamespaces="{NAMESPACE}"\t{line_of(KEY).replace(" ", chr(9))}\t# x\n', None, ALICE, True, ""),
    "CRLF in the list": (LISTED.replace("\n", "\r\n"), None, ALICE, True, ""),
    "revoked": (LISTED, f"# left\n{line_of(KEY)} alice\n", ALICE, False, "is revoked"),
    "another is revoked": (LISTED, f"{line_of(OTHER)}\n", ALICE, True, ""),
    "empty revocation list": (LISTED, "# nobody\n\n", ALICE, True, ""),
    "revocation list is garbage": (LISTED, "garbage\n", ALICE, False, "cannot be read"),
    "principal is an option": (f"-x {line_of(KEY)}\n", None, "-x", False, "cannot be a principal"),
    "principal with a blank": (f'"a b" {line_of(KEY)}\n', None, "a b", False, "cannot be a principal"),
    "principal with a NUL": (LISTED, None, ALICE + "\0", False, "cannot be a principal"),
    "principal is a pattern": (LISTED, None, "*", False, "not for *"),
}


@pytest.mark.parametrize("name", LISTS)
def test_both_verifiers_agree_on_who_may_sign(name: str, tmp_path: Path) -> None:
    signers, revoked, principal, ok, words = LISTS[name]
    outcome = agree(GOOD, trust_of(tmp_path, signers, revoked), principal)
    assert (outcome.ok, outcome.code) == (ok, "" if ok else "SL603"), outcome
    assert words in outcome.reason
    assert outcome.fingerprint == sshsig.fingerprint(blob_of(KEY))


def test_without_a_time_it_is_now(tmp_path: Path) -> None:
    past = f'{ALICE} valid-before="20200101" {line_of(KEY)}\n'
    future = f'{ALICE} valid-before="29990101" {line_of(KEY)}\n'
    assert "expired" in agree(GOOD, trust_of(tmp_path, past), at=None).reason
    assert agree(GOOD, trust_of(tmp_path, past), at=datetime(2019, 6, 1, tzinfo=UTC)).ok
    assert agree(GOOD, trust_of(tmp_path, future), at=None).ok


@pytest.mark.parametrize("content", [None, b"SSHKRL\n\0rest"])
def test_a_revocation_list_that_cannot_be_used_revokes_everything(content: bytes | None, tmp_path: Path) -> None:
    trust = trust_of(tmp_path, LISTED, "")
    assert trust.revoked is not None
    trust.revoked.unlink() if content is None else trust.revoked.write_bytes(content)
    assert agree(GOOD, trust).code == "SL603"


def test_key_revocation_list_of_openssh(tmp_path: Path) -> None:
    key = make_key(tmp_path, "k")
    subprocess.run(["ssh-keygen", "-q", "-k", "-f", "krl", "k.pub"], check=True, cwd=tmp_path)
    (tmp_path / "list").write_text(f"{ALICE} {public(key)}\n")
    armored = sign(MESSAGE, key, NAMESPACE)
    assert verify_openssh(MESSAGE, armored, NAMESPACE, ALICE, Trust(tmp_path / "list"), NOW).ok
    revoked = Trust(tmp_path / "list", tmp_path / "krl")
    assert verify_openssh(MESSAGE, armored, NAMESPACE, ALICE, revoked, NOW).code == "SL603"
    assert verify_strict(MESSAGE, armored, NAMESPACE, ALICE, revoked, NOW).code == "SL603"


def test_other_key_types_need_openssh(tmp_path: Path) -> None:
    key = make_key(tmp_path, "k", "ecdsa")
    (tmp_path / "list").write_text(f"{ALICE} {public(key)}\n")
    armored, trust = sign(MESSAGE, key, NAMESPACE), Trust(tmp_path / "list")
    assert verify_openssh(MESSAGE, armored, NAMESPACE, ALICE, trust, NOW).ok
    refused = verify_strict(MESSAGE, armored, NAMESPACE, ALICE, trust, NOW)
    assert not refused.ok
    assert "only OpenSSH can check it" in refused.reason


def test_a_certificate_is_accepted_through_its_authority_by_openssh_only(tmp_path: Path) -> None:
    authority, key = make_key(tmp_path, "ca"), make_key(tmp_path, "k")
    command = ["ssh-keygen", "-q", "-s", "ca", "-I", "alice", "-n", ALICE, "k.pub"]
    subprocess.run(command, check=True, cwd=tmp_path)
    (tmp_path / "list").write_text(f"*@example.com cert-authority {public(authority)}\n")
    armored, trust = sign(MESSAGE, key.with_name("k-cert.pub"), NAMESPACE), Trust(tmp_path / "list")
    assert verify_openssh(MESSAGE, armored, NAMESPACE, ALICE, trust).ok
    assert not verify_openssh(MESSAGE, armored, NAMESPACE, BOB, trust).ok
    assert not verify_strict(MESSAGE, armored, NAMESPACE, ALICE, trust).ok


def test_verify_takes_openssh_where_it_is_and_ours_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust = trust_of(tmp_path, LISTED)
    assert shutil.which("ssh-keygen")
    assert signature.verify(MESSAGE, GOOD, NAMESPACE, ALICE, trust, NOW).ok
    monkeypatch.setenv("PATH", str(tmp_path))
    assert signature.verify(MESSAGE, GOOD, NAMESPACE, ALICE, trust, NOW).ok
    assert signature.verify(b"other", GOOD, NAMESPACE, ALICE, trust, NOW).code == "SL602"


def test_an_ssh_keygen_that_hangs_is_a_failure_not_a_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "ssh-keygen"
    slow.write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(signature, "TIMEOUT", 0.2)
    outcome = verify_openssh(MESSAGE, GOOD, NAMESPACE, ALICE, trust_of(tmp_path, LISTED), NOW)
    assert "did not answer" in outcome.reason
    assert not outcome.ok


# --- which bytes are signed ---


def test_the_statement_is_an_in_toto_statement_of_the_whole_entry() -> None:
    entry = {"id": "r", "spec": "sha256:" + "a" * 64, "signature": "not part of it"}
    assert statement("result", "tiny", entry["spec"], entry) == canonical(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": "tiny", "digest": {"sha256": "a" * 64}}],
            "predicateType": "urn:pair-spec:result:v1",
            "predicate": {"id": "r", "spec": entry["spec"]},
        }
    )


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [leaf for key, child in children for leaf in leaves(child, (*at, key))]
    yield from found or [at]


def changed(entry: dict[str, Any], at: tuple[Any, ...]) -> dict[str, Any]:
    """The entry with one leaf changed as little as its type allows."""
    copied = copy.deepcopy(entry)
    holder: Any = copied
    for key in at[:-1]:
        holder = holder[key]
    value = holder[at[-1]]
    holder[at[-1]] = {
        bool: lambda: not value,
        int: lambda: value + 1,
        float: lambda: value * (1 + 1e-15) if value * (1 + 1e-15) != value else value * (1 + 1e-14),
        str: lambda: value[:-1] + chr(ord(value[-1]) ^ 1),
        list: lambda: [0],
        dict: lambda: {"x": 0},
        type(None): lambda: 0,
    }[type(value)]()
    return copied


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, Trust]:
    """A signed result, its spec's name, and the trust under which it holds."""
    data = document.parse(SPEC.encode(), "").data
    entry = result(data)
    entry["signature"] = armour(forge(message=statement("result", data["name"], entry["spec"], entry)))
    return entry, data["name"], trust_of(tmp_path_factory.mktemp("trust"), LISTED)


def test_changing_any_leaf_of_a_result_breaks_its_signature(
    signed: tuple[dict[str, Any], str, Trust], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, name, trust = signed
    assert verify_entry("result", name, entry, trust).ok
    monkeypatch.setattr(signature, "verify", verify_strict)  # 120 leaves: no process for each
    paths = [path for path in leaves(entry) if path != ("signature",)]
    assert len(paths) > 100
    for path in paths:
        code = verify_entry("result", name, changed(entry, path), trust).code
        assert code in ("SL602", "SL603"), path
        assert code == "SL602" or path == ("signer",)


def test_moving_adding_and_removing_breaks_it_too(signed: tuple[dict[str, Any], str, Trust]) -> None:
    entry, name, trust = signed
    assert verify_entry("result", "another-spec", entry, trust).code == "SL602"
    assert verify_entry("approval", name, entry, trust).code == "SL602"
    assert verify_entry("result", name, {**entry, "extra": 1}, trust).code == "SL602"
    for key in entry:
        assert not verify_entry("result", name, {k: v for k, v in entry.items() if k != key}, trust).ok
    swapped = dict(reversed(entry.items())) | {"attempts": {"spec": 1, "pair": 2.0}}
    assert verify_entry("result", name, swapped, trust).ok  # order and spelling are free, values are not


@pytest.mark.parametrize("bad", [None, 3, [], {}, "x", "\ud800"])
def test_an_entry_of_the_wrong_shape_is_a_finding_not_a_traceback(signed: tuple[dict[str, Any], str, Trust], bad: Any) -> None:
    entry, name, trust = signed
    for key in ("spec", "signature", "signer", "figures"):
        assert not verify_entry("result", name, {**entry, key: bad}, trust).ok


def test_the_signed_time_is_read(signed: tuple[dict[str, Any], str, Trust]) -> None:
    assert signature.signed_at("result", signed[0]) == datetime(2026, 11, 30, 11, tzinfo=UTC)
    assert signature.signed_at("approval", {"time": "yesterday"}) is None


# --- speclint.toml ---


def test_trust_is_found_upwards_but_not_beyond_the_repository(tmp_path: Path) -> None:
    (tmp_path / "speclint.toml").write_text('[trust]\nallowed_signers = "a"\n[approvals]\nmin = 2\nother_than_signer = true\n')
    (tmp_path / "a").write_text("")
    (tmp_path / "repo" / "specs").mkdir(parents=True)
    spec = tmp_path / "repo" / "specs" / "x.spec.yaml"
    found = load_trust(spec)
    assert (found.allowed_signers, found.min_approvals, found.other_than_signer) == (tmp_path / "a", 2, True)
    (tmp_path / "repo" / ".git").mkdir()
    assert load_trust(spec) == Trust()


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("[trust\n", "cannot be read"),
        ('[trust]\nallowed_signers = "gone"\n', "which is not there"),
        ('[trust]\nallowed_signer = "a"\n', "has no key 'allowed_signer'"),
        ("[trust]\nallowed_signers = 3\n", "is not a path"),
        ("trust = 1\n", "[trust] is not a table"),
        ("[approvals]\nmin = -1\n", "count of at least 0"),
        ("[approvals]\nmin = true\n", "count of at least 0"),
        ('[approvals]\nother_than_signer = "no"\n', "true or false"),
    ],
)
def test_a_policy_that_cannot_be_read_trusts_nobody(tmp_path: Path, toml: str, words: str) -> None:
    (tmp_path / "speclint.toml").write_text(toml)
    trust = load_trust(tmp_path / "x.spec.yaml")
    assert words in trust.problem
    assert agree(GOOD, trust).code == "SL603"
    assert words in agree(GOOD, trust).reason


def test_without_a_policy_nobody_is_trusted_and_the_key_is_named() -> None:
    outcome = agree(GOOD, Trust())
    assert outcome.code == "SL603"
    assert sshsig.fingerprint(blob_of(KEY)) in outcome.reason
    assert "no speclint.toml" in outcome.reason


@pytest.mark.parametrize(
    ("name", "patterns", "hit"),
    [("a", "a", True), ("ab", "a?", True), ("a.b", "a?b", True), ("axb", "a.b", False), ("a", "b,a", True), ("a", "*,!a", False)],
)
def test_pattern_lists(name: str, patterns: str, hit: bool) -> None:
    assert signers.matches(name, patterns) is hit
