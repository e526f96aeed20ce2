"""The control plane itself: it starts, answers, says why it cannot start, and leaves nothing behind."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import ControlPlane, Manifest
from tests.cluster.programs import Ports, Program, ProgramError, wait_for
from tests.cluster.workloads import deployment

pytestmark = pytest.mark.toolchain


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in {"Z", "X"}


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def started_pods(cluster: Cluster, namespace: str, count: int) -> list[Manifest] | None:
    """The namespace's pods once ``count`` of them run."""
    pods = (cluster.get(f"/api/v1/namespaces/{namespace}/pods") or {})["items"]
    return pods if [pod["status"]["phase"] for pod in pods] == ["Running"] * count else None


def test_api_server_keeps_what_it_is_sent(api_server: ControlPlane, namespace: str) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    api_server.apply(config, namespace=namespace)
    found = api_server.get(f"/api/v1/namespaces/{namespace}/configmaps/c")
    assert found is not None
    assert found["data"] == {"a": "1"}


def test_pod_of_a_deployment_is_ready_after_its_start_up_time() -> None:
    with Cluster() as cluster:
        namespace = cluster.create_namespace()
        cluster.apply(deployment("quick", replicas=3), namespace=namespace)
        cluster.apply(deployment("endless", replicas=2, startup="24h"), namespace=namespace)
        cluster.wait_for("3 ready pods", lambda: len(cluster.ready_pods(namespace)) == 3)

        pods = cluster.wait_for("5 started pods", lambda: started_pods(cluster, namespace, 5))
        addresses = {ipaddress.ip_address(pod["status"]["podIP"]) for pod in pods}
        assert len(addresses) == 5
        assert all(address in ipaddress.ip_network(cluster.pod_network) for address in addresses)
        assert cluster.ready_pods(namespace, "app=endless") == []


def test_two_clusters_on_a_machine_have_their_own_addresses() -> None:
    one, other = Ports(), Ports()
    try:
        assert one.reserve_network() != other.reserve_network()
        assert one.reserve("etcd") != other.reserve("etcd")
    finally:
        one.release()
        other.release()


def test_service_account_has_its_own_rights_and_no_more(api_server: ControlPlane, namespace: str) -> None:
    kubeconfig = str(api_server.service_account_kubeconfig(namespace, "default"))
    role = f"{namespace}-reader"
    subject = f"--serviceaccount={namespace}:default"
    api_server.kubectl("create", "clusterrole", role, "--verb=list", "--resource=pods")
    api_server.kubectl("create", "rolebinding", "r", "-n", namespace, f"--clusterrole={role}", subject)
    assert "NAME" not in api_server.kubectl("get", "pods", "--kubeconfig", kubeconfig)
    with pytest.raises(RuntimeError, match='cannot list resource "secrets"'):
        api_server.kubectl("get", "secrets", "--kubeconfig", kubeconfig)


def test_nothing_is_left_of_a_stopped_control_plane() -> None:
    with ControlPlane() as plane:
        pids = [program.pid for program in plane.programs.values()]
        assert all(pid is not None and is_running(pid) for pid in pids)
    assert not any(pid is not None and is_running(pid) for pid in pids)
    assert not plane.folder.exists()


def test_logs_of_a_failed_test_are_kept() -> None:
    with ControlPlane() as plane:
        plane.keep_logs = True
        assert str(plane.folder / "logs" / "kube-apiserver.log") in plane.logs()
    assert (plane.folder / "logs" / "etcd.log").exists()
    plane.remove()
    assert not plane.folder.exists()


def test_a_stopped_program_can_be_started_again_on_its_port() -> None:
    with ControlPlane() as plane:
        plane.programs["kube-apiserver"].stop()
        plane.programs["kube-apiserver"].start()
        plane.wait_for("the API server again", plane.is_ready)


def test_programs_die_with_the_process_that_started_them(tmp_path: Path) -> None:
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from tests.cluster.programs import Program\n"
        f"program = Program('sleeper', ['sleep', '600'], Path({str(tmp_path / 'log')!r}))\n"
        "program.start()\n"
        "print(program.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        wait_for("the child's own program", lambda: command(child) == "sleep", timeout_s=30)
        parent.kill()
    wait_for("the end of the child", lambda: not is_running(child), timeout_s=10)


def test_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    script = f"trap '' TERM; touch {ready}; while :; do sleep 0.1; done"
    program = Program("stubborn", ["sh", "-c", script], tmp_path / "log")
    program.start()
    wait_for("the trap", ready.exists, timeout_s=10)
    pid = program.pid
    assert pid is not None
    program.stop()
    assert not is_running(pid)


def test_port_in_use_is_told_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ProgramError, match=f"^port {port} for kube-apiserver cannot be had: .*in use$"):
            ControlPlane(port=port)


def test_missing_program_is_told_in_one_line(tmp_path: Path) -> None:
    program = Program("etcd", [tmp_path / "etcd"], tmp_path / "log")
    with pytest.raises(ProgramError, match=f"^etcd cannot be started: there is no program {tmp_path}/etcd$"):
        program.start()


def test_program_that_ends_while_waited_for_shows_its_last_words(tmp_path: Path) -> None:
    program = Program("etcd", ["sh", "-c", "echo no disk; exit 3"], tmp_path / "log")
    program.start()
    with pytest.raises(ProgramError, match=r"^etcd ended with status 3:\n.*\nno disk$"):
        wait_for("etcd", lambda: False, timeout_s=10, programs=[program])


def test_kill_by_hand_is_noticed(tmp_path: Path) -> None:
    program = Program("sleeper", ["sleep", "600"], tmp_path / "log")
    program.start()
    pid = program.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ProgramError, match=r"^sleeper ended with status -9:"):
        wait_for("nothing", lambda: False, timeout_s=10, programs=[program])
