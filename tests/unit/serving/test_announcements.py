"""What is said on ScaledObjects as events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scaler.cluster.events import Severity
from scaler.cluster.model import ScaledObject, Trigger
from scaler.serving.announcements import Announcer
from scaler.targets import Target, Targets, World
from tests.protocol.world import NAME, NAMESPACE, POLICY, Fleet
from tests.unit.targets.world import HandClock


@dataclass
class Notebook:
    """Keeps what was said."""

    lines: list[tuple[str, str, str]] = field(default_factory=list)

    def say(self, about: ScaledObject, reason: str, note: str, severity: Severity = "Normal") -> None:
        assert (about.namespace, about.name) == (NAMESPACE, NAME)
        self.lines.append((severity, reason, note))


class Scene:
    """A fleet, its target, and an announcer who is heard, or not."""

    def __init__(self, *, speaks: bool = True) -> None:
        self.fleet = Fleet()
        self.notebook = Notebook()
        self.clock = HandClock()
        self.targets = Targets(World(self.fleet, self.fleet, clock=self.clock))
        self.announcer = Announcer(self.targets, self.notebook, lambda: speaks)
        self.targets.world.observers.append(self.announcer.note)

    def show(self, metadata: Mapping[str, str] = POLICY) -> None:
        shown = [scaled_object(metadata)]
        self.targets.show(shown)
        self.announcer.show(shown)

    @property
    def target(self) -> Target:
        (target,) = self.targets
        return target

    @property
    def said(self) -> list[tuple[str, str, str]]:
        """What was said since the last look."""
        lines, self.notebook.lines = self.notebook.lines, []
        return lines


def scaled_object(metadata: Mapping[str, str]) -> ScaledObject:
    return ScaledObject(
        namespace=NAMESPACE,
        name=NAME,
        uid="uid",
        generation=1,
        api_version="apps/v1",
        kind="Deployment",
        target=NAME,
        minimum=0,
        maximum=20,
        cooldown_s=300.0,
        polling_s=30.0,
        paused=False,
        triggers=(Trigger(0, "external-push", metadata),),
    )


async def test_pods_that_find_no_node_are_said_once_and_when_it_is_over() -> None:
    scene = Scene()
    scene.show()
    scene.fleet.unschedulable = 2
    for _ in range(3):
        await scene.target.tick()
    ((severity, reason, note),) = [line for line in scene.said if line[1].startswith("Capacity")]
    assert (severity, reason) == ("Warning", "CapacityBlocked")
    assert note.startswith("2 pods found no node in ")
    assert note.endswith("lacking: nvidia.com/gpu")
    scene.fleet.unschedulable = 0
    for _ in range(3):
        await scene.target.tick()
    ((severity, reason, note),) = [line for line in scene.said if line[1].startswith("Capacity")]
    assert (severity, reason) == ("Normal", "CapacityFound")


async def test_a_change_of_mind_is_said_once_with_its_reason() -> None:
    scene = Scene()
    scene.show()
    scene.fleet.waiting = 45
    await scene.target.tick()
    ((severity, reason, note),) = scene.said
    assert (severity, reason) == ("Normal", "DesiredReplicas")
    assert note.startswith("1 → 5: ")
    await scene.target.tick()
    assert scene.said == []


async def test_an_invalid_trigger_is_said_with_all_its_problems() -> None:
    scene = Scene()
    scene.show({**POLICY, "upscaleDelay": "soon", "headrom": "1"})
    ((severity, reason, note),) = scene.said
    assert (severity, reason) == ("Warning", "InvalidTrigger")
    assert "upscaleDelay: 'soon'" in note
    assert "did you mean headroom?" in note


async def test_a_trigger_that_becomes_invalid_is_said_while_the_last_valid_one_goes_on() -> None:
    scene = Scene()
    scene.show()
    scene.fleet.running = 10
    await scene.target.tick()
    assert scene.said == []
    scene.show({**POLICY, "upscaleDelay": "soon"})
    await scene.target.tick()
    await scene.target.tick()
    ((severity, reason, note),) = scene.said
    assert (severity, reason) == ("Warning", "ScalerWarning")
    assert "upscaleDelay: 'soon'" in note


async def test_values_that_only_keda_knows_are_not_called_invalid() -> None:
    scene = Scene()
    scene.show({"targetOngoingRequestsFromEnv": "TARGET"})
    assert scene.said == []


async def test_pods_that_cannot_be_read_are_said_once_until_one_can() -> None:
    scene = Scene()
    scene.show()
    for _ in range(2):
        scene.fleet.silent = True
        scene.clock.now += 60
        await scene.target.tick()
        await scene.target.tick()
        ((severity, note),) = ((severity, note) for severity, reason, note in scene.said if reason == "Stale")
        assert severity == "Warning"
        assert "connection refused" in note
        scene.fleet.silent = False
        await scene.target.tick()


async def test_a_target_that_no_scaled_object_names_is_not_spoken_of() -> None:
    scene = Scene()
    scene.targets.find(NAMESPACE, NAME, POLICY)
    scene.fleet.waiting = 45
    await scene.target.tick()
    assert scene.said == []


async def test_a_standby_is_silent() -> None:
    scene = Scene(speaks=False)
    scene.show()
    scene.fleet.waiting = 45
    await scene.target.tick()
    assert scene.said == []
