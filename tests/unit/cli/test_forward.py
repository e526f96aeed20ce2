"""kubectl as it may answer where the scaler is asked for by it: a list, a complaint, something else, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaler.cli.forward import Kubectl, NoWay, Service

ONE = '{"items": [{"metadata": {"namespace": "keda", "name": "vllm-scaler"}}]}'


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubectl that does what the script says that is written to it."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "kubectl"


def does(program: Path, script: str) -> Kubectl:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Kubectl()


def test_the_one_scaler_of_the_cluster_is_found(kubectl: Path) -> None:
    assert does(kubectl, f"echo '{ONE}'").scaler() == Service("keda", "vllm-scaler")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("true", "kubectl answers '', which is no list of Services"),
        ("echo 'Welcome to the cluster!'", "kubectl answers 'Welcome to the cluster!', which is"),
        ("echo '{}'", "no list of Services"),
        ("echo null", "no list of Services"),
        ("echo '{\"items\": null}'", "no list of Services"),
        ('echo \'{"items": [{"metadata": {}}]}\'', "no list of Services"),
        ("printf '\\377\\376'", "no list of Services"),
        ("head -c 1000000 /dev/zero", "no list of Services"),
        ("echo '{\"items\": []}'", "is the scaler installed?"),
        ("exit 3", "it ends with status 3 and no word"),
        (
            "printf '\\377\\nno such context\\n' >&2; exit 1",
            "kubectl cannot tell where the scaler is: no such context;",
        ),
        ("kill -9 $$", "it ends with status -9 and no word"),
    ],
)
def test_an_answer_without_a_scaler_is_told_in_one_line(kubectl: Path, script: str, told: str) -> None:
    with pytest.raises(NoWay) as error:
        does(kubectl, script).scaler()
    assert told in str(error.value)
    assert "--service NAMESPACE/NAME" in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("exit 0", "nothing came of it"),
        ("echo hello; exit 1", "nothing came of it"),
        ("echo 'unable to forward port' >&2; exit 1", "keda/vllm-scaler: unable to forward port; is one of its pods"),
        ("exec sleep 60", "nothing came of it"),
    ],
)
def test_a_port_that_is_not_forwarded_is_told(
    kubectl: Path, script: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaler.cli.forward.FORWARD_S", 2.0)
    forward = does(kubectl, script).forward(Service("keda", "vllm-scaler"))
    with pytest.raises(NoWay, match=told), forward:
        pass


@pytest.mark.parametrize("text", ["", "/", "keda/", "/vllm-scaler", "vllm-scaler", "a/b/c"])
def test_what_names_no_service_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no NAMESPACE/NAME, such as keda/vllm-scaler"):
        Service.parse(text)
