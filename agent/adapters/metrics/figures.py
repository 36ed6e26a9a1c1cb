"""What of the machine is in use, in each form that somebody may ask for."""

from collections.abc import Callable, Iterator, Sequence

from agent.core.model import Object
from agent.core.pods.info import PodInfo, pod_stats
from agent.core.usage import Detail
from agent.ports import Host


class Figures:
    """The machine's figures; it is read when somebody asks, and what writes the answer is loaded then."""

    def __init__(self, *, host: Host, node_name: str, pods: Callable[[], Sequence[PodInfo]] = tuple) -> None:
        self._host, self._node_name, self._pods = host, node_name, pods

    async def summary(self, only_cpu_and_memory: bool) -> tuple[Object, Iterator[Object]]:
        """/stats/summary: first without pods, of which there may be many, then these."""
        from agent.core.summary import node_summary  # noqa: PLC0415

        usage = await self._host.usage(Detail.COUNTERS if only_cpu_and_memory else Detail.NODE)
        node = node_summary(usage, node_name=self._node_name, only_cpu_and_memory=only_cpu_and_memory)
        return node, pod_stats(self._pods(), usage.at)

    async def resource(self) -> bytes:
        """/metrics/resource."""
        from agent.adapters.metrics.resource import resource_page  # noqa: PLC0415

        return resource_page(await self._host.usage(Detail.COUNTERS))

    async def cadvisor(self) -> bytes:
        """/metrics/cadvisor."""
        from agent.adapters.metrics.cadvisor import cadvisor_page  # noqa: PLC0415

        return cadvisor_page(await self._host.usage(Detail.MOUNTS))
