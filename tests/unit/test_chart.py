"""The Helm chart, rendered by the real helm: what it runs, what it may do, who may call it, and what it refuses."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from scaler.cli import policies
from scaler.cli.serve import serve
from tests.cluster import toolchain

pytestmark = pytest.mark.toolchain

CHART = Path(__file__).parents[2] / "k8s" / "chart"

EVERYTHING = """
replicaCount: 2
leaderElection: {enabled: true}
watchNamespaces: [serving, batch]
extraScaleTargets: [{apiGroup: leaderworkerset.x-k8s.io, resource: leaderworkersets}]
removal: {idleFirst: true, protectBusy: true}
delivery: {direct: true}
policies: {chat: {policy: adaptive, headroom: 10%, maxNumSeqs: 64, startingCredit: false}}
budgets: {pool: {gpus: 16, priorities: {chat/llama: 10, "batch/*": -1}}}
shadow: true
warm: {enabled: true, by: placeholders, image: mirror/pause:3, priorityClass: {name: low, value: -9}}
sources:
  prometheusURL: http://prometheus.monitoring.svc:9090
  dcgmURL: http://{host_ip}:9400/metrics
  bearerToken: {secretName: page-token}
  ca: {configMapName: page-ca}
  serverName: pages.serving.svc
page: {token: {secretName: look}}
tls: {secretName: scaler-tls, clientCA: {secretName: keda-ca}}
recording: {enabled: true, claimName: recordings}
logLevel: debug
networkPolicy: {egress: {enabled: true, extra: [{ports: [{port: 9090}]}]}}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
prometheusRule: {enabled: true, labels: {release: prometheus}, runbookURL: 'https://git.example.org/main/'}
dashboards: {enabled: true, annotations: {grafana_folder: Serving}}
imagePullSecrets: [{name: registry}]
priorityClassName: system-cluster-critical
podLabels: {team: serving}
podAnnotations: {note: x}
nodeSelector: {pool: system}
tolerations: [{key: system, operator: Exists}]
affinity: {nodeAffinity: {}}
env: [{name: VLLM_SCALER_LOG_FORMAT, value: json}]
serviceAccount: {annotations: {a: b}}
service: {annotations: {a: b}}
"""
VALUES = {
    "defaults": "{}",
    "everything": EVERYTHING,
    "single, guarded": "podDisruptionBudget: {enabled: true}",
    "plain TLS": "tls: {secretName: scaler-tls}",
    "recording to memory": "recording: {enabled: true}",
    "KubeRay": "ray: {enabled: true, token: {secretName: ray-token}}",
    "warm": "warm: {enabled: true}",
    "warm by buffers": "warm: {enabled: true, by: buffer}",
    "foreign account": "serviceAccount: {create: false, name: given}",
    "closed": "networkPolicy: {monitoringNamespace: '', egress: {enabled: true}}",
}


def helm(*words: str, values: str = "{}") -> subprocess.CompletedProcess[str]:
    command = [str(toolchain.binary("helm")), *words, "--values", "-"]
    return subprocess.run(command, input=values, capture_output=True, text=True, check=False, timeout=60)


@cache
def rendered(values: str = "{}") -> tuple[dict[str, Any], ...]:
    result = helm("template", "vllm-scaler", str(CHART), "--namespace", "keda", values=values)
    assert result.returncode == 0, result.stderr
    return tuple(document for document in yaml.safe_load_all(result.stdout) if document)


def only(kind: str, values: str = "{}", name: str = "") -> dict[str, Any]:
    """The one document of a kind whose name ends in `name`."""
    (found,) = [
        document
        for document in rendered(values)
        if document["kind"] == kind and document["metadata"]["name"].endswith(name)
    ]
    return found


def pod(values: str = "{}") -> dict[str, Any]:
    spec: dict[str, Any] = only("Deployment", values)["spec"]["template"]["spec"]
    return spec


def rules(values: str = "{}") -> list[tuple[str, str, tuple[str, ...]]]:
    """Every rule of every role, as (group, resource, verbs), sorted; the same ones of several Roles once."""
    roles = [document for document in rendered(values) if document["kind"] in ("Role", "ClusterRole")]
    return sorted(
        {
            (group, resource, tuple(rule["verbs"]))
            for role in roles
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
    )


@pytest.fixture(params=VALUES.values(), ids=VALUES)
def values(request: pytest.FixtureRequest) -> str:
    text: str = request.param
    return text


def test_helm_lints_it_strictly(values: str) -> None:
    result = helm("lint", "--strict", str(CHART), values=values)
    assert result.returncode == 0, result.stdout


def test_every_option_is_one_of_the_servers(values: str) -> None:
    app = typer.Typer()
    app.command()(serve)
    options = {name: parameter for parameter in typer.main.get_command(app).params for name in parameter.opts}
    word, *arguments = pod(values)["containers"][0]["args"]
    assert word == "serve"
    for argument in arguments:
        name, equals, value = argument.partition("=")
        assert name in options
        assert bool(equals) is not options[name].is_flag
        assert value or not equals


def test_what_is_asked_for_is_said_to_the_server() -> None:
    assert pod(EVERYTHING)["containers"][0]["args"] == [
        "serve",
        "--listen=[::]:9090",
        "--http-listen=[::]:9091",
        "--address=vllm-scaler.keda.svc:9090",
        "--log-format=json",
        "--log-level=debug",
        "--namespaces=serving,batch",
        "--warm=placeholders",
        "--warm-priority-class=low",
        "--warm-image=mirror/pause:3",
        "--idle-first",
        "--protect-busy",
        "--leader-elect",
        "--lease-name=vllm-scaler",
        "--tls-cert=/etc/vllm-scaler/tls/tls.crt",
        "--tls-key=/etc/vllm-scaler/tls/tls.key",
        "--client-ca=/etc/vllm-scaler/client-ca/ca.crt",
        "--prometheus=http://prometheus.monitoring.svc:9090",
        "--dcgm-url=http://{host_ip}:9400/metrics",
        "--bearer-token-file=/etc/vllm-scaler/bearer-token/token",
        "--page-token-file=/etc/vllm-scaler/page-token/token",
        "--ca-file=/etc/vllm-scaler/ca/ca.crt",
        "--server-name=pages.serving.svc",
        "--policies=/etc/vllm-scaler/policies/policies.yaml",
        "--budgets=/etc/vllm-scaler/budgets/budgets.yaml",
        "--shadow",
        "--record=/var/lib/vllm-scaler/$(POD_NAME).jsonl",
    ]


def test_every_file_named_is_mounted_read_only(values: str) -> None:
    spec = pod(values)
    container = spec["containers"][0]
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert {mount["name"] for mount in mounts.values()} == {volume["name"] for volume in spec["volumes"]}
    for argument in container["args"]:
        file = argument.partition("=")[2]
        if file.startswith("/"):
            mount = mounts[str(Path(file).parent)]
            assert mount.get("readOnly", False) is file.startswith("/etc/")


def test_the_container_can_do_no_more_than_it_must(values: str) -> None:
    spec = pod(values)
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not spec.keys() & {"hostNetwork", "hostPID", "hostIPC"}
    assert all("hostPath" not in volume for volume in spec["volumes"])
    assert container["resources"]["limits"]["memory"]


def test_a_services_variables_cannot_pass_for_the_servers_own(values: str) -> None:
    assert pod(values)["enableServiceLinks"] is False


def test_probes_and_service_reach_the_ports_that_are_served() -> None:
    container = pod()["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": 9090, "http": 9091}
    assert {container[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")} == {
        "http"
    }
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    service = only("Service")["spec"]
    assert {(port["port"], port["targetPort"]) for port in service["ports"]} == {(9090, "grpc"), (9091, "http")}
    assert service["type"] == "ClusterIP"
    assert service["selector"].items() <= only("Deployment")["spec"]["template"]["metadata"]["labels"].items()


def test_roles_allow_no_more_than_looking_and_telling() -> None:
    look = ("list", "watch")
    in_namespaces = [
        ("", "pods", look),
        ("apps", "deployments", look),
        ("apps", "statefulsets", look),
        ("autoscaling", "horizontalpodautoscalers", look),
        ("events.k8s.io", "events", ("create", "patch")),
        ("keda.sh", "scaledobjects", look),
    ]
    assert rules() == [("", "nodes", look), *in_namespaces]
    assert rules("watchNamespaces: [serving]") == in_namespaces


def test_each_feature_brings_its_own_rights_and_no_others() -> None:
    def added(values: str) -> set[tuple[str, str, tuple[str, ...]]]:
        return set(rules(values)) - set(rules())

    lws = "extraScaleTargets: [{apiGroup: leaderworkerset.x-k8s.io, resource: leaderworkersets}]"
    assert added(lws) == {
        ("leaderworkerset.x-k8s.io", "leaderworkersets", ("list", "watch")),
        ("leaderworkerset.x-k8s.io", "leaderworkersets/scale", ("get",)),
    }
    assert added("delivery: {direct: true}") == {
        ("apps", "deployments/scale", ("patch",)),
        ("apps", "statefulsets/scale", ("patch",)),
    }
    assert ("leaderworkerset.x-k8s.io", "leaderworkersets/scale", ("get", "patch")) in rules(
        f"{lws}\ndelivery: {{direct: true}}"
    )
    assert added("{replicaCount: 2, leaderElection: {enabled: true}}") == {
        ("coordination.k8s.io", "leases", ("get", "update")),
        ("coordination.k8s.io", "leases", ("create",)),
    }


def test_kuberays_groups_bring_rights_and_a_resource_that_outlives_the_release() -> None:
    values = "ray: {enabled: true}"
    assert set(rules(values)) - set(rules()) == {
        ("ray.io", "rayclusters", ("list", "watch", "patch")),
        ("ray.io", "rayservices", ("list", "watch", "patch")),
        ("vllm-scaler.dev", "rayworkergroups", ("list", "watch", "patch")),
        ("vllm-scaler.dev", "rayworkergroups/status", ("patch",)),
        ("vllm-scaler.dev", "rayworkergroups/scale", ("get",)),
    }
    assert ("vllm-scaler.dev", "rayworkergroups/scale", ("get", "patch")) in rules(
        f"{values}\ndelivery: {{direct: true}}"
    )
    assert "--ray" in pod(values)["containers"][0]["args"]
    assert (
        "--ray-token-file=/etc/vllm-scaler/ray-token/auth_token"
        in pod("ray: {enabled: true, token: {secretName: t}}")["containers"][0]["args"]
    )
    definition = only("CustomResourceDefinition", values)
    assert definition["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    elsewhere = "ray: {enabled: true, installCRD: false}"
    for without in ("{}", elsewhere):
        assert "CustomResourceDefinition" not in {document["kind"] for document in rendered(without)}
    assert rules(elsewhere) == rules(values)


def test_room_on_nodes_brings_the_rights_of_its_way_alone() -> None:
    look = {("apps", "statefulsets", ("get",))}
    buffers = {
        ("", "podtemplates", ("list", "create", "patch", "delete")),
        ("autoscaling.x-k8s.io", "capacitybuffers", ("create", "patch", "delete")),
    }
    placeholders = {("apps", "deployments", ("get", "create", "patch", "delete"))}
    for by, expected in {
        "buffer": look | buffers | {("apps", "deployments", ("get",))},
        "placeholders": look | placeholders,
        "auto": look | buffers | placeholders,
    }.items():
        values = f"warm: {{enabled: true, by: {by}}}"
        assert set(rules(values)) - set(rules()) == expected
        assert f"--warm={by}" in pod(values)["containers"][0]["args"]
        assert ("PriorityClass" in {document["kind"] for document in rendered(values)}) == (by != "buffer")


@pytest.mark.parametrize(("key", "option"), [("idleFirst", "--idle-first"), ("protectBusy", "--protect-busy")])
def test_pods_are_patched_only_where_they_are_to_be_marked(key: str, option: str) -> None:
    values = f"removal: {{{key}: true}}"
    plain, marking = set(rules()), set(rules(values))
    assert marking - plain == {("", "pods", ("list", "watch", "patch"))}
    assert plain - marking == {("", "pods", ("list", "watch"))}
    assert option in pod(values)["containers"][0]["args"]


def test_placeholders_give_way_to_every_pod_and_to_none_of_themselves() -> None:
    made = only("PriorityClass", "warm: {enabled: true}")
    assert f"--warm-priority-class={made['metadata']['name']}" in pod("warm: {enabled: true}")["containers"][0]["args"]
    assert made["value"] < 0
    assert made["preemptionPolicy"] == "Never"
    assert "globalDefault" not in made
    given = "warm: {enabled: true, priorityClass: {create: false, name: given}}"
    assert "PriorityClass" not in {document["kind"] for document in rendered(given)}
    assert "--warm-priority-class=given" in pod(given)["containers"][0]["args"]


def test_there_are_no_wildcards_and_no_secrets_in_the_roles(values: str) -> None:
    for group, resource, verbs in rules(values):
        assert "*" not in (group, resource, *verbs)
        assert resource not in ("secrets", "configmaps", "pods/exec")
        assert set(verbs) <= {"get", "list", "watch", "create", "update", "patch", "delete"}
        assert "delete" not in verbs or resource in ("deployments", "podtemplates", "capacitybuffers")


def test_with_namespaces_named_nothing_is_cluster_wide() -> None:
    kinds = {document["kind"] for document in rendered("watchNamespaces: [serving, batch]")}
    assert not kinds & {"ClusterRole", "ClusterRoleBinding"}
    bindings = [d for d in rendered("watchNamespaces: [serving, batch]") if d["kind"] == "RoleBinding"]
    assert {binding["metadata"]["namespace"] for binding in bindings} == {"serving", "batch"}
    for binding in bindings:
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "vllm-scaler", "namespace": "keda"}]


def test_leases_may_be_taken_only_where_the_scaler_lives() -> None:
    (lease,) = [d for d in rendered(EVERYTHING) if d["kind"] == "Role" and d["metadata"]["name"].endswith("-leader")]
    assert lease["metadata"]["namespace"] == "keda"
    assert [rule.get("resourceNames") for rule in lease["rules"]] == [["vllm-scaler"], None]


def test_a_renamed_release_is_found_under_its_own_name() -> None:
    renamed = "{fullnameOverride: llm-scaler, service: {grpcPort: 7000}, leaderElection: {enabled: true}}"
    arguments = pod(renamed)["containers"][0]["args"]
    assert "--address=llm-scaler.keda.svc:7000" in arguments
    assert "--lease-name=llm-scaler" in arguments
    assert only("Service", renamed)["metadata"]["name"] == "llm-scaler"


def namespace_of(peer: dict[str, Any]) -> str:
    labels = peer["namespaceSelector"]["matchLabels"]
    assert peer.keys() == {"namespaceSelector"}
    assert labels.keys() == {"kubernetes.io/metadata.name"}
    name: str = labels["kubernetes.io/metadata.name"]
    return name


@pytest.mark.parametrize(
    ("values", "admitted"),
    [
        ("{}", {("keda", "grpc"), ("monitoring", "http")}),
        ("networkPolicy: {monitoringNamespace: ''}", {("keda", "grpc")}),
        (
            "networkPolicy: {kedaNamespace: keda-system, monitoringNamespace: o11y}",
            {("keda-system", "grpc"), ("o11y", "http")},
        ),
    ],
)
def test_the_network_lets_in_keda_and_monitoring_each_to_its_port(values: str, admitted: set[tuple[str, str]]) -> None:
    spec = only("NetworkPolicy", values)["spec"]
    assert spec["policyTypes"] == ["Ingress"]
    assert spec["podSelector"]["matchLabels"] == only("Service")["spec"]["selector"]
    found = {
        (namespace_of(peer), port["port"])
        for rule in spec["ingress"]
        for peer in rule["from"]
        for port in rule["ports"]
    }
    assert found == admitted
    assert all(rule["from"] and rule["ports"] for rule in spec["ingress"])  # an empty list would admit all


def test_egress_can_be_narrowed_to_metrics_pages_api_server_and_names() -> None:
    spec = only("NetworkPolicy", "{watchNamespaces: [serving], networkPolicy: {egress: {enabled: true}}}")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    pages, api_server, names = spec["egress"]
    assert pages["to"][0]["namespaceSelector"]["matchExpressions"][0]["values"] == ["serving"]
    assert [port["port"] for port in pages["ports"]] == [8000, 8080]
    assert [port["port"] for port in api_server["ports"]] == [443, 6443]
    assert {port["port"] for port in names["ports"]} == {53}
    with_ray = only("NetworkPolicy", "{ray: {enabled: true}, networkPolicy: {egress: {enabled: true}}}")["spec"]
    assert [port["port"] for port in with_ray["egress"][0]["ports"]] == [8000, 8080, 8265]


def test_policies_arrive_as_the_server_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "policies.yaml"
    file.write_text(only("ConfigMap", EVERYTHING, "-policies")["data"]["policies.yaml"])
    assert policies.load(file) == {
        "chat": {"policy": "adaptive", "headroom": "10%", "maxNumSeqs": "64", "startingCredit": "false"}
    }


def test_changed_policies_roll_the_pods() -> None:
    def annotations(values: str) -> dict[str, str]:
        found: dict[str, str] = only("Deployment", values)["spec"]["template"]["metadata"]["annotations"]
        return found

    assert annotations("policies: {a: {headroom: 1}}") != annotations("policies: {a: {headroom: 2}}")


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ("{}", "vllm-scaler:0.1.0"),
        ("image: {repository: registry.example/scaler, tag: edge}", "registry.example/scaler:edge"),
        (f"image: {{tag: edge, digest: 'sha256:{'0' * 64}'}}", f"vllm-scaler@sha256:{'0' * 64}"),
    ],
)
def test_the_image_is_the_charts_version_unless_said_otherwise(values: str, image: str) -> None:
    assert pod(values)["containers"][0]["image"] == image


def test_the_charts_version_is_the_packages() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert f'version = "{chart["appVersion"]}"' in (CHART.parents[1] / "pyproject.toml").read_text()


def test_a_roll_out_with_a_standby_does_not_wait_for_a_second_ready_pod() -> None:
    def strategy(values: str) -> Any:
        return only("Deployment", values)["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"]

    assert strategy("{}") == 0
    assert strategy(EVERYTHING) == "100%"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ("replicas: 2", "replicas"),
        ("image: {repo: x}", "repo"),
        ("image: {digest: abc}", "digest"),
        ("watchNamespaces: serving", "watchNamespaces"),
        ("watchNamespaces: [Serving]", "watchNamespaces"),
        ("extraScaleTargets: [{resource: leaderworkersets}]", "apiGroup"),
        ("extraScaleTargets: [{apiGroup: x.io, resource: '*'}]", "resource"),
        ("policies: {chat: fast}", "policies"),
        ("policies: {chat: {rules: [a]}}", "rules"),
        ("logLevel: loud", "logLevel"),
        ("ray: true", "ray"),
        ("sources: {prometheusURL: prometheus:9090}", "prometheusURL"),
        ("prometheusRule: {runbookURL: docs}", "runbookURL"),
        ("dashboards: true", "dashboards"),
        ("networkPolicy: {kedaNamespace: ''}", "kedaNamespace"),
        ("replicaCount: 2", "needs leaderElection.enabled"),
        ("{leaderElection: {enabled: true}, podDisruptionBudget: {enabled: true}}", "would block every drain"),
        ("tls: {clientCA: {secretName: keda-ca}}", "set tls.secretName"),
        ("warm: {by: both}", "/warm/by"),
        ("warm: {enabled: true, image: 'a: b'}", "/warm/image"),
        ("warm: {enabled: true, priorityClass: {create: false}}", "need the name of a PriorityClass"),
        ("warm: {priorityClass: {value: 0}}", "/warm/priorityClass/value"),
        ("removal: {idleFirst: 1}", "/removal/idleFirst"),
        ("budgets: {pool: {gpus: 16}}", "/budgets/pool"),
        ("budgets: {pool: {gpus: 16, priorities: {}}}", "/budgets/pool/priorities"),
        ("budgets: {pool: {gpus: 16, priorities: {chat: 1}}}", "/budgets/pool/priorities"),
        ("service: {grpcPort: 9091}", "service.httpPort: 9091 is service.grpcPort, too"),
        ("podLabels: {app.kubernetes.io/name: other}", "podLabels: app.kubernetes.io/name is the chart's own"),
        ("fullnameOverride: '1e5'", "/fullnameOverride"),
    ],
)
def test_wrong_values_are_refused_by_name(values: str, told: str) -> None:
    result = helm("template", "vllm-scaler", str(CHART), values=values)
    assert result.returncode != 0
    assert told in result.stderr


SWITCHED_ON = """
warm: {enabled: true}
ray: {enabled: true, token: {secretName: x}}
recording: {enabled: true}
networkPolicy: {egress: {enabled: true}}
serviceMonitor: {enabled: true}
prometheusRule: {enabled: true}
dashboards: {enabled: true}
tls: {secretName: x, clientCA: {secretName: x}}
sources: {bearerToken: {secretName: x}, ca: {configMapName: x}}
page: {token: {secretName: x}}
"""


def paths(values: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from paths(value, (*above, key))


def emptied(path: tuple[str, ...]) -> str:
    """Values in which one key has nothing behind it."""
    values = part = yaml.safe_load(SWITCHED_ON)
    for key in path[:-1]:
        part = part.setdefault(key, {})
    part[path[-1]] = None
    return yaml.safe_dump(values)


@pytest.mark.parametrize("path", [*paths(yaml.safe_load((CHART / "values.yaml").read_text()))], ids=".".join)
def test_a_key_with_nothing_behind_it_is_as_if_it_were_empty_or_refused_by_name(path: tuple[str, ...]) -> None:
    result = helm("template", "vllm-scaler", str(CHART), values=emptied(path))
    if result.returncode:
        assert f"'{path[-1]}'" in result.stderr or ".".join(path) in result.stderr, result.stderr
        assert "nil pointer" not in result.stderr
    else:
        assert "nil" not in [word.strip("<>") for word in result.stdout.split()]
        assert not [at for document in yaml.safe_load_all(result.stdout) for at in nothing(document)]


def nothing(document: Any, at: str = "") -> Iterator[str]:
    """Where a manifest says null."""
    if document is None:
        yield at
    elif isinstance(document, dict | list):
        for key, value in document.items() if isinstance(document, dict) else enumerate(document):
            yield from nothing(value, f"{at}/{key}")


LIKE_NUMBERS = """
replicaCount: 2
leaderElection: {enabled: true}
watchNamespaces: ["1", "0x10", "1e6"]
serviceAccount: {name: "true"}
priorityClassName: "null"
terminationGracePeriodSeconds: 1000000
tls: {secretName: "5e5", clientCA: {secretName: "0x10", key: "1e1"}}
sources: {bearerToken: {secretName: "1.5", key: "12"}, ca: {configMapName: "1", key: "3"}, serverName: "7"}
page: {token: {secretName: "8", key: "1.0"}}
recording: {enabled: true, claimName: "9"}
ray: {enabled: true, token: {secretName: "0", key: "1_0"}}
warm: {enabled: true, by: placeholders, priorityClass: {value: -2147483648, name: "1e3"}}
networkPolicy: {kedaNamespace: "0", monitoringNamespace: "1", egress: {enabled: true}}
serviceMonitor: {enabled: true, interval: 1m}
prometheusRule: {enabled: true}
dashboards: {enabled: true}
extraScaleTargets: [{apiGroup: "1", resource: "true"}]
budgets: {pool: {gpus: 10000000, priorities: {"chat/*": -10000000}}}
"""
NAMES = {"name", "namespace", "secretName", "claimName", "serviceAccountName", "priorityClassName", "key", "path"}


def test_names_that_read_like_numbers_stay_names_and_numbers_stay_whole() -> None:
    result = helm("template", "123", str(CHART), "--namespace", "456", values=LIKE_NUMBERS)
    assert result.returncode == 0, result.stderr
    documents = [document for document in yaml.safe_load_all(result.stdout) if document]
    for document in documents:
        for key, value in leaves(document):
            assert isinstance(value, str) or key not in NAMES, (document["kind"], key, value)
            assert not isinstance(value, float), (document["kind"], key, value)
        assert all(isinstance(value, str) for value in document["metadata"]["labels"].values())
        for rule in document.get("rules", []):
            assert all(isinstance(each, str) for words in rule.values() for each in words)
    (priority,) = [document["value"] for document in documents if document["kind"] == "PriorityClass"]
    assert priority == -2147483648
    (spec,) = [document["spec"]["template"]["spec"] for document in documents if document["kind"] == "Deployment"]
    assert spec["terminationGracePeriodSeconds"] == 1_000_000
    (budget,) = [d["data"]["budgets.yaml"] for d in documents if "budgets.yaml" in d.get("data", {})]
    assert yaml.safe_load(budget) == {"pool": {"gpus": 10_000_000, "priorities": {"chat/*": -10_000_000}}}


def leaves(document: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value with the key that it stands under."""
    if isinstance(document, dict):
        for inner, value in document.items():
            yield from leaves(value, inner)
    elif isinstance(document, list):
        for value in document:
            yield from leaves(value, key)
    else:
        yield key, document


def test_alerts_and_dashboard_come_as_they_are_with_the_runbooks_where_they_can_be_read() -> None:
    rule = only("PrometheusRule", EVERYTHING)
    alerts = yaml.safe_load((CHART / "dashboards" / "alerts.yaml").read_text())
    for each in alerts["groups"][0]["rules"]:
        each["annotations"]["runbook_url"] = "https://git.example.org/main/" + each["annotations"]["runbook_url"]
    assert rule["spec"] == alerts
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    board = only("ConfigMap", EVERYTHING, "-dashboard")
    assert json.loads(board["data"]["vllm-scaler.json"]) == json.loads(
        (CHART / "dashboards" / "dashboard.json").read_text()
    )
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert board["metadata"]["annotations"] == {"grafana_folder": "Serving"}


def test_prometheus_keeps_the_models_namespace() -> None:
    (endpoint,) = only("ServiceMonitor", EVERYTHING)["spec"]["endpoints"]
    assert endpoint["honorLabels"] is True
    assert endpoint["port"] in {port["name"] for port in only("Service")["spec"]["ports"]}


def test_notes_say_what_comes_next() -> None:
    words = ("install", "vllm-scaler", str(CHART), "--dry-run=client", "--namespace", "keda")
    notes = helm(*words).stdout.partition("NOTES:")[2]
    assert "scalerAddress: vllm-scaler.keda.svc:9090" in notes
    assert "vllm-scaler lint" in notes
    assert "  kubectl vllm-scaler explain NAME -n NAMESPACE\n" in notes
    assert "enableTLS" not in notes
    with_tls = helm(*words, values="tls: {secretName: t, clientCA: {secretName: c}}").stdout
    assert 'enableTLS: "true"' in with_tls
    assert "-n NAMESPACE --ca-file CA.pem --cert-file CERT.pem --key-file KEY.pem\n" in with_tls
    leader = "kubectl -n keda wait deployment/vllm-scaler --for=jsonpath='{.status.readyReplicas}'=1"
    assert leader not in notes
    assert leader in helm(*words, values="{replicaCount: 2, leaderElection: {enabled: true}}").stdout


def test_a_standby_that_is_never_ready_is_no_failed_roll_out() -> None:
    def deadline(values: str) -> int | None:
        found: int | None = only("Deployment", values)["spec"].get("progressDeadlineSeconds")
        return found

    assert deadline("{}") is None
    assert deadline("{replicaCount: 2, leaderElection: {enabled: true}}") == 2**31 - 1
