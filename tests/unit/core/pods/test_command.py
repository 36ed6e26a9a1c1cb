"""What plain commands do, beside a real shell."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.pods.command import CommandPlan, Output, understood

ENVIRONMENT = {"NAME": "web-0", "CODE": "3", "WORDS": "two words", "EMPTY": "", "AGAIN": 'echo again; sh -c "$AGAIN"'}
FILES = {"/etc/podinfo/name": "web-0", "/etc/podinfo/labels": 'app="web"\ntier="front"\n'}


def run(*command: str) -> CommandPlan | None:
    """What a command line does in that environment."""
    return understood(command, ENVIRONMENT, FILES.get)


def script(text: str) -> CommandPlan | None:
    """What a script does."""
    return run("sh", "-c", text)


@pytest.mark.parametrize(
    ("command", "seconds", "code"),
    [
        (["sleep", "30"], 30.0, 0),
        (["/bin/sleep", "1.5"], 1.5, 0),
        (["sleep", "1h", "30m"], 5400.0, 0),
        (["true"], 0.0, 0),
        (["/usr/bin/false"], 0.0, 1),
        (["sh", "-c", "exit 3"], 0.0, 3),
        (["/bin/bash", "-c", "sleep 5; exit 1"], 5.0, 1),
        (["sh", "-c", "exit 257"], 0.0, 1),
        (["sh", "-c", "false; exit"], 0.0, 1),
        (["sh", "-c", "exit $CODE"], 0.0, 3),
        (["sh", "-c", "false || sleep 2 && sleep 3"], 5.0, 0),
        (["sh", "-c", "true || sleep 2 && sleep 3"], 3.0, 0),
        (["sh", "-c", "sleep 1\n\n# a comment; exit 4\nexit 2\n"], 1.0, 2),
        (["sh", "-ec", "false; sleep 9"], 0.0, 1),
        (["sh", "-e", "-c", "false || true; sleep 9"], 9.0, 0),
        (["sh", "-c", "sh -c 'sleep 2; exit 4' || sleep 3"], 5.0, 0),
        (["sh", "-c", ""], 0.0, 0),
    ],
)
def test_a_plain_command_ends_as_it_says(command: list[str], seconds: float, code: int) -> None:
    plan = run(*command)
    assert plan is not None
    assert (plan.run_seconds, plan.exit_code) == (seconds, code)


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["nginx"],
        ["/opt/sleep", "5"],
        ["exit", "1"],  # no program
        ["sleep", "infinity"],
        ["sleep"],
        ["cat", "/etc/passwd"],
        ["sh"],
        ["sh", "-c"],
        ["sh", "/run.sh"],
        ["sh", "-xc", "true"],
        ["sh", "-c", "while true; do sleep 1; done"],
        ["sh", "-c", "if true; then exit 1; fi"],
        ["sh", "-c", "sleep 1 & exit 1"],
        ["sh", "-c", "echo hi | cat"],
        ["sh", "-c", "echo hi > /tmp/x"],
        ["sh", "-c", "exit $(( $RANDOM / 16384 ))"],
        ["sh", "-c", "echo `date`"],
        ["sh", "-c", "A=1; true"],
        ["sh", "-c", "echo $UNKNOWN"],
        ["sh", "-c", "echo $WORDS"],  # a shell would split it
        ["sh", "-c", "echo *"],
        ["sh", "-c", "echo -e a"],
        ["sh", "-c", "echo 'a\\nb'"],  # two lines in one shell, and one in another
        ["sh", "-c", "true &&"],
        ["sh", "-c", "; true"],
        ["sh", "-c", "echo 'open"],
        ["sh", "-c", "x" * 20_000],
    ],
)
def test_anything_else_is_not_understood(command: list[str]) -> None:
    assert run(*command) is None


def test_what_follows_a_command_that_is_not_understood_never_comes() -> None:
    assert script("echo hi; sleep 5; serve; exit 1") == CommandPlan(None, 0, (Output(0.0, "hi"),))


def test_output_has_the_time_at_which_it_is_printed() -> None:
    plan = script("echo one; sleep 2; echo two; sleep 3; exit 1")
    assert plan == CommandPlan(5.0, 1, (Output(0.0, "one"), Output(2.0, "two")))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("echo $NAME", ["web-0"]),
        ("echo ${NAME}!", ["web-0!"]),
        ("echo \"$WORDS and\" '$NAME' \\$x", ["two words and $NAME $x"]),
        ("echo   a    b", ["a b"]),
        ("echo 'a\nb'", ["a", "b"]),
        ("echo", [""]),
        ("echo -n x", ["x"]),
        ("cat /etc/podinfo/labels", ['app="web"', 'tier="front"']),
        ('echo "$EMPTY"', [""]),
    ],
)
def test_echo_and_cat_print(text: str, printed: list[str]) -> None:
    plan = script(text)
    assert plan is not None
    assert [line.text for line in plan.output] == printed


def test_a_script_that_calls_itself_ends() -> None:
    plan = script('sh -c "$AGAIN"')
    assert plan is not None
    assert plan.run_seconds is None
    assert 0 < len(plan.output) < 20


_COMMAND = st.sampled_from(
    [
        "true",
        "false",
        "echo a",
        "echo $NAME b",
        "exit",
        "exit 3",
        "exit $CODE",
        "sleep 0",
        ":",
        'echo "$WORDS" c',
        "sh -c 'false; echo n'",
    ]
)
_JOINT = st.sampled_from(["; ", " && ", " || ", "\n", ";\n", " # comment\n"])


@given(st.lists(st.tuples(_COMMAND, _JOINT), min_size=1, max_size=8), st.booleans())
def test_a_script_ends_and_prints_as_in_a_real_shell(parts: list[tuple[str, str]], stops_at_error: bool) -> None:
    text = "".join(command + joint for command, joint in parts) + "true"
    command = ["sh", "-ec" if stops_at_error else "-c", text]
    plan = run(*command)
    real = subprocess.run(
        command, capture_output=True, text=True, env={**ENVIRONMENT, "PATH": "/usr/bin:/bin"}, check=False
    )
    assert plan is not None
    assert "".join(f"{line.text}\n" for line in plan.output) == real.stdout
    assert plan.exit_code == real.returncode


_NOISE = st.text(alphabet="ab $'\"\\;&|\n#{}()<>-echosltrufa0123456789NAME!*?[]~=`.", max_size=60)


@given(_NOISE)
def test_no_text_is_too_much(text: str) -> None:
    """Only what is certain is understood: such a script does the same in a real shell."""
    plan = script(text)
    if plan is None or plan.run_seconds is None or "sleep" in text:
        return
    real = subprocess.run(
        ["sh", "-c", text],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "PATH": "/usr/bin:/bin"},
        check=False,
        timeout=60,
    )
    assert "".join(f"{line.text}\n" for line in plan.output) == real.stdout
    assert plan.exit_code == real.returncode
