"""The topology of a cluster: a rooted tree of domains, with GPUs in its lowest level."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from optsched.cluster.topology_faults import some, tree_faults
from optsched.documents.base import Items
from optsched.documents.faults import InstanceError
from optsched.documents.schemas import require
from optsched.instance import CheckedDocument, Document, Fault, dumps, load
from optsched.registry import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import networkx as nx

    from optsched.documents.arrays import Indices


SCHEMA_ID: Literal["optsched/topology/1"] = "optsched/topology/1"
Name = Annotated[str, Field(min_length=1)]


class Domain(Document):
    """A node, rack, block, ...: what stands together in the network."""

    id: Name
    level: Name = Field(description="One of the topology's levels.")
    parent: Name | None = Field(
        default=None, description="Id of the domain around this one; none for the root."
    )
    gpus: Items[Name] = Field(
        default=(), description="Ids of the GPUs that exist; only in domains of the lowest level."
    )
    drained: bool = Field(
        default=False, description="Whether nothing may be placed here, or in domains inside."
    )


class Topology(CheckedDocument):
    """A rooted tree of domains of any depth and uneven fan-out.

    GPUs stand in domains of the lowest level, `levels[0]`. A branch may skip levels: a node may
    hang directly below the cluster while others stand in racks. Missing GPUs are not listed.

    GPUs are numbered from 0 in the order of `gpus` and domains in the order of `domains`; the
    arrays below hold these numbers.

    Examples
    --------
    >>> from optsched.cluster import Topology
    >>> topology = Topology.from_document({
    ...     "levels": ["node", "cluster"],
    ...     "domains": [
    ...         {"id": "all", "level": "cluster"},
    ...         {"id": "a", "level": "node", "parent": "all", "gpus": ["a/0", "a/1"]},
    ...         {"id": "b", "level": "node", "parent": "all", "gpus": ["b/0"]},
    ...     ],
    ... })
    >>> topology.gpus
    ('a/0', 'a/1', 'b/0')
    >>> topology.levels[topology.lowest_common_level(["a/1", "b/0"])]
    'cluster'
    """

    schema_id: Literal["optsched/topology/1"] = Field(
        default=SCHEMA_ID, alias="schema", exclude=True
    )
    levels: Items[Name] = Field(
        min_length=1, description="Names of the levels, from the domains that hold GPUs up."
    )
    domains: Items[Domain] = Field(min_length=1)

    def to_json(self) -> str:
        """Return the JSON text of a file of its own, which begins with the schema."""
        rest = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return dumps({"schema": SCHEMA_ID, **rest})

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield faults that concern several fields; bears fields of wrong types."""
        yield from tree_faults(document)

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """Ids of the available GPUs, depth first, so that those of a domain stand together.

        Domains inside one another and GPUs keep the order of the document; what is drained is
        left out.
        """
        drained = {g for d in self._drained for g in self.domains[d].gpus}
        return tuple(gpu for gpu in self._paths if gpu not in drained)

    @cached_property
    def ancestors(self) -> Indices:
        """The domain around each available GPU at each level, an array of GPUs x levels.

        Where a branch skips a level, the nearest domain below that level is repeated. So two GPUs
        agree in a column exactly if their lowest common domain stands at that level or below.
        """
        import numpy as np

        homes = [n for n in self._order if self.domains[n].gpus and n not in self._drained]
        paths = np.array([self._column_of_each_level(n) for n in homes], dtype=np.intp)
        counts = np.array([len(self.domains[n].gpus) for n in homes], dtype=np.intp)
        paths = paths.reshape(len(homes), len(self.levels))
        return _frozen(np.repeat(paths, counts, axis=0))

    def lowest_common_level(self, gpus: Iterable[str]) -> int:
        """Return the level, 0 for the lowest, of the lowest domain around all the GPUs.

        Parameters
        ----------
        gpus
            Ids of one GPU or more; drained ones too.

        Raises
        ------
        UnknownNameError
            If there is no GPU of one of the ids.
        ValueError
            If there is no id.
        """
        try:
            paths = set(map(self._paths.__getitem__, gpus))
        except KeyError as error:
            (unknown,) = error.args
            raise UnknownNameError("GPU", unknown, some(unknown, self._paths)) from None
        if not paths:
            raise ValueError("lowest_common_level of no GPU")
        if len(paths) == 1:
            return 0
        common = (len(set(column)) == 1 for column in zip(*paths, strict=True))
        return next(level for level, same in enumerate(common) if same)

    def domain(self, name: str) -> Domain:
        """Return the domain of an id.

        Raises
        ------
        UnknownNameError
            If there is none.
        """
        return self.domains[self._number(name)]

    def domains_at(self, level: str | int) -> Indices:
        """Return the numbers of the domains of a level, given by name or number."""
        import numpy as np

        name = self.levels[level] if isinstance(level, int) else level
        if name not in self.levels:
            raise UnknownNameError("level", name, list(self.levels))
        numbers = [n for n, domain in enumerate(self.domains) if domain.level == name]
        return np.array(numbers, dtype=np.intp)

    def gpus_in(self, domain: str | int) -> Indices:
        """Return the numbers of the available GPUs in a domain, given by id or number."""
        import numpy as np

        number = domain if isinstance(domain, int | np.integer) else self._number(domain)
        start, stop = self._spans[int(number)]
        return np.arange(start, stop)

    def graph(self) -> nx.DiGraph[str]:
        """Return the tree, with edges from each domain to those inside and to its GPUs.

        Attributes of vertices: `kind` ("domain" or "gpu") and `level`; of domains also `height`
        (the number of the level) and `drained`. Both writers of networkx, `node_link_data` and
        `write_graphml`, keep everything that `optsched.cluster.import_topology` reads again.
        """
        tree = self._tree.copy()
        for domain in self.domains:
            height = self.levels.index(domain.level)
            tree.add_node(
                domain.id, kind="domain", level=domain.level, height=height, drained=domain.drained
            )
            tree.add_nodes_from(domain.gpus, kind="gpu", level="gpu")
            tree.add_edges_from((domain.id, gpu) for gpu in domain.gpus)
        return tree

    def _number(self, domain: str) -> int:
        if domain not in self._numbers:
            raise UnknownNameError("domain", domain, some(domain, self._numbers))
        return self._numbers[domain]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {domain.id: number for number, domain in enumerate(self.domains)}

    @cached_property
    def _tree(self) -> nx.DiGraph[str]:
        import networkx as nx

        tree: nx.DiGraph[str] = nx.DiGraph()
        tree.add_nodes_from(domain.id for domain in self.domains)
        tree.add_edges_from((d.parent, d.id) for d in self.domains if d.parent is not None)
        return tree

    @cached_property
    def _order(self) -> list[int]:
        """Numbers of the domains, depth first from the root."""
        import networkx as nx

        root = next(domain.id for domain in self.domains if domain.parent is None)
        return [self._numbers[name] for name in nx.dfs_preorder_nodes(self._tree, root)]

    @cached_property
    def _around(self) -> dict[int, tuple[int, ...]]:
        """For each domain, itself and those around it, from the lowest to the root."""
        around: dict[int, tuple[int, ...]] = {}
        for number in self._order:
            parent = self.domains[number].parent
            above = () if parent is None else around[self._numbers[parent]]
            around[number] = (number, *above)
        return around

    @cached_property
    def _drained(self) -> set[int]:
        """Domains that are drained, or stand in one that is."""
        flagged = {number for number, domain in enumerate(self.domains) if domain.drained}
        return {number for number, around in self._around.items() if flagged & set(around)}

    @cached_property
    def _paths(self) -> dict[str, tuple[int, ...]]:
        """For each GPU, drained or not, a domain at each level; depth first."""
        paths = {}
        for number in self._order:
            if self.domains[number].gpus:
                path = self._column_of_each_level(number)
                paths.update(dict.fromkeys(self.domains[number].gpus, path))
        return paths

    def _column_of_each_level(self, number: int) -> tuple[int, ...]:
        by_level = {self.domains[d].level: d for d in self._around[number]}
        path: list[int] = []
        for level in self.levels:
            path.append(by_level.get(level, path[-1] if path else number))
        return tuple(path)

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        """Number of the first available GPU of each domain, and of the first one after it."""
        start = [0] * len(self.domains)
        stop = [0] * len(self.domains)
        count = 0
        for number in self._order:
            start[number] = count
            if number not in self._drained:
                count += len(self.domains[number].gpus)
            for above in self._around[number]:
                stop[above] = count
        return list(zip(start, stop, strict=True))


def read_topology(path: str | Path) -> Topology:
    """Read a topology from a file of its own, as `optsched topology import` writes it.

    Raises
    ------
    InstanceError
        If the file is not a valid topology; all faults are named at once.
    OSError
        If it cannot be read.
    """
    document = load(Path(path), "; `optsched topology import` reads files of other programs")
    require(document, SCHEMA_ID, path)
    if isinstance(document, dict) and "schema" not in document:
        text = f'schema: missing: expected "schema": "{SCHEMA_ID}"'
        raise InstanceError(str(path), [text])
    return Topology.from_document(document, str(path))


def _frozen(array: Indices) -> Indices:
    array.setflags(write=False)
    return array
