"""serve.yml changes the running pair, and only what it must."""

from __future__ import annotations

import pytest
from lab_pair import Lab, Play


def command(lab: Lab, host: str) -> list[str]:
    """The engine's command line in the running container."""
    words: list[str] = lab.inspect(host)["Config"]["Cmd"]
    return words


@pytest.fixture(scope="module", autouse=True)
def _defaults_again(lab: Lab, converged: Play) -> object:
    """Leave the pair as site.yml made it."""
    yield
    lab.play("serve.yml").succeeded()


def test_parallel_2_restarts_both_ranks_once_and_writes_only_their_files(lab: Lab, converged: Play) -> None:
    before = lab.containers()

    run = lab.play("serve.yml", "-e", "parallel=2", "--diff").succeeded()

    after = lab.containers()
    assert all(before[host] != after[host] and after[host] for host in lab.hosts)
    for host in lab.hosts:
        words = command(lab, host)
        assert words[words.index("--parallel") + 1] == "2"
    assert lab.get("/health")["streams"]["max"] == 2
    assert [line for line in run.output.splitlines() if line.startswith('+    "2"')], (
        "the diff shows the change"
    )
    assert "Pull the engine image" not in run.output
    assert run.recap[lab.hosts[1]]["changed"] == 1, "on the worker, its rank file alone"

    again = lab.play("serve.yml", "-e", "parallel=2").succeeded()

    assert again.changed == 0
    assert lab.containers() == after


def test_l11_a_wrong_argument_is_refused_while_the_pair_serves_on(lab: Lab, converged: Play) -> None:
    before = lab.containers()

    run = lab.play("serve.yml", "-e", '{"extra_args": ["--contxt", "4096"]}').refused()

    assert "unrecognized arguments: --contxt" in run.output
    assert "nothing was changed" in run.output
    assert lab.containers() == before
    assert "OK" in lab.chat("Reply with OK.")


def test_extra_args_come_last_and_win_with_quotes_and_spaces(lab: Lab, converged: Play) -> None:
    words = '--max-tokens 16384 --name "a name"'

    lab.play("serve.yml", "-e", f"extra_args='{words}'").refused()
    lab.play("serve.yml", "-e", '{"extra_args": ["--max-tokens", "16384"]}').succeeded()

    for host in lab.hosts:
        assert command(lab, host)[-2:] == ["--max-tokens", "16384"]


def test_check_mode_shows_the_restart_and_does_nothing(lab: Lab, converged: Play) -> None:
    before = lab.containers()

    run = lab.play("serve.yml", "-e", "context=524288", "--check", "--diff").succeeded()

    assert '+    "524288"' in run.output
    assert "-pair: serving" in run.output
    assert lab.containers() == before


def test_restart_true_restarts_an_unchanged_pair(lab: Lab, converged: Play) -> None:
    lab.play("serve.yml").succeeded()
    before = lab.containers()

    lab.play("serve.yml", "-e", "restart=true").succeeded()

    after = lab.containers()
    assert all(before[host] != after[host] and after[host] for host in lab.hosts)


def test_a_setting_of_the_supervisor_restarts_no_rank(lab: Lab, converged: Play) -> None:
    lab.play("serve.yml").succeeded()
    before = lab.containers()

    run = lab.play("serve.yml", "-e", "canary_interval=20").succeeded()

    assert run.changed == 2, "pair.json, and the supervisor that reads it"
    assert lab.containers() == before
    assert '"serving"' in lab.root(lab.hosts[0], "cat", "/run/twinserve/state.json")


def test_gpu_clocks_are_held_while_the_rank_runs_and_only_then(lab: Lab, converged: Play) -> None:
    note = "/var/lib/lab-engine/clocks"

    lab.play("serve.yml", "-e", "gpu_clock_max=2200").succeeded()
    held = [lab.root(host, "cat", note) for host in lab.hosts]
    lab.play("serve.yml").succeeded()

    assert held == ["0,2200", "0,2200"]
    assert not any(lab.node(host).file(note).exists for host in lab.hosts)
