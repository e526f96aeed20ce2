from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from scaler.cluster.client import ApiClient
from scaler.cluster.errors import ApiError, ConfigurationError
from scaler.cluster.resources import DEPLOYMENTS, PODS
from tests.unit.cluster.fake_api import FakeApi
from tests.unit.cluster.objects import ready_pod


async def test_namespace_is_the_contexts(client: ApiClient) -> None:
    assert client.namespace == "keda"


async def test_absent_object_is_told_by_its_name(client: ApiClient) -> None:
    with pytest.raises(ApiError, match=r"^cannot get pods a in namespace serving: 404 pods \"a\" not found$") as caught:
        await client.get(PODS, "serving", "a")
    assert caught.value.status == 404


async def test_missing_right_on_a_subresource_names_it(api: FakeApi, client: ApiClient) -> None:
    api.forbidden.add(("patch", "deployments/scale"))
    with pytest.raises(ApiError) as caught:
        await client.patch(DEPLOYMENTS, "serving", "llama", {"spec": {"replicas": 3}}, "scale")
    assert str(caught.value) == (
        "system:serviceaccount:keda:scaler may not patch deployments.apps/scale llama in namespace serving: a Role or "
        'ClusterRole with the rule {apiGroups: ["apps"], resources: ["deployments/scale"], verbs: ["patch"]} is missing'
    )


async def test_api_server_that_is_not_there_is_told_in_one_line(api: FakeApi, client: ApiClient) -> None:
    await api.stop()
    with pytest.raises(ApiError, match=r"^cannot get pods a in namespace serving: no way to the API server http://127"):
        await client.get(PODS, "serving", "a")
    await api.start()


async def test_replaced_credentials_are_read_anew(api: FakeApi, client: ApiClient) -> None:
    await api.put(PODS, ready_pod("a"))
    api.token = "new"
    with pytest.raises(ApiError, match="401"):
        await client.get(PODS, "serving", "a")
    async with await ApiClient.connect(api.kubeconfig) as later:
        api.write_kubeconfig("new")
        assert (await later.get(PODS, "serving", "a"))["metadata"]["name"] == "a"
    assert api.tokens[-1] == "Bearer new"


async def test_missing_kubeconfig_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigurationError, match=r"there is no kubeconfig .*/none; name one by --kubeconfig"):
        await ApiClient.connect(tmp_path / "none")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "other"))
    with pytest.raises(ConfigurationError, match=r"there is no kubeconfig .*/other"):
        await ApiClient.connect()


@pytest.mark.parametrize("text", ["", "current-context: nowhere", "clusters: 7", "{", "a: b"])
async def test_kubeconfig_that_makes_no_sense_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"^kubeconfig .* cannot be used: .+$") as caught:
        await ApiClient.connect(path)
    assert "\n" not in str(caught.value)


async def test_context_is_one_of_the_kubeconfigs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")  # a pod's own account has no contexts
    contexts = {name: {"cluster": name, "user": "me", "namespace": f"{name}-models"} for name in ("east", "west")}
    path = tmp_path / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "east",
                "contexts": [{"name": name, "context": context} for name, context in contexts.items()],
                "clusters": [{"name": name, "cluster": {"server": f"http://{name}:80"}} for name in contexts],
                "users": [{"name": "me", "user": {}}],
            }
        )
    )
    monkeypatch.setenv("KUBECONFIG", str(path))
    async with await ApiClient.connect() as east, await ApiClient.connect(context="west") as west:
        assert (east.server, east.namespace) == ("http://east:80", "east-models")
        assert (west.server, west.namespace) == ("http://west:80", "west-models")
    with pytest.raises(ConfigurationError, match="north"):
        await ApiClient.connect(context="north")


async def test_pod_without_its_account_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr("scaler.cluster.connection._ACCOUNT", Path("/nowhere"))
    with pytest.raises(ConfigurationError, match="this pod's own account cannot be used: Service token file"):
        await ApiClient.connect()
