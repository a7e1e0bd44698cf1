"""The base of everything that is written to a file: data that were validated, and stay as they are.

What a constructor is given is checked as what a file holds: every fault at once, each with its
place, what was found and what was expected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, SerializeAsAny, ValidationError, model_validator
from pydantic_core import PydanticCustomError, to_jsonable_python

from optsched.documents.faults import Fault, InstanceError, all_lines, shown, validation_faults
from optsched.documents.faults import lines as fault_lines
from optsched.documents.json_files import dumps, encoded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Key = TypeVar("Key")
    Item = TypeVar("Item")
    Entries: TypeAlias = Mapping[Key, Item]
    Items: TypeAlias = Sequence[Item]
else:
    Entries = dict

    class Items:
        """A tuple, of any length; constructors take any sequence, and types say so."""

        def __class_getitem__(cls, item: Any) -> Any:
            return tuple[item, ...]


SHORT = 60
"""Characters up to which a part of a document is written out where the whole is one line."""
NOT_SHOWN = ("schema_id", "description", "source")


def _in_schemas(schema: dict[str, Any]) -> None:
    """Leave the examples of docstrings out of the schema of files."""
    if "description" in schema:
        schema["description"] = schema["description"].partition("\n\nExamples\n")[0]


class Document(BaseModel):
    """Base of everything that is written to a file: frozen, and without unknown keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, json_schema_extra=_in_schemas
    )

    if not TYPE_CHECKING:  # types are read from the fields

        def __init__(self, /, **fields: Any) -> None:
            """Check the fields, and raise an `InstanceError` with all faults at once."""
            try:
                super().__init__(**fields)
            except ValidationError as error:
                faults = self._faults(fields, error) or fault_lines(
                    (detail["loc"], detail["msg"]) for detail in error.errors(include_url=False)
                )
            else:
                return
            raise InstanceError(type(self).__name__, faults)

        # Pydantic fills nested documents itself, and so finds the faults of all of them.
        __init__.__pydantic_base_init__ = True

    @classmethod
    def trusted(cls, **fields: Any) -> Self:
        """Return a document of all of its fields, valid by construction: nothing is checked.

        It takes a fraction of the time of `model_construct`, which looks for defaults and aliases.
        """
        document = cls.__new__(cls)
        object.__setattr__(document, "__dict__", fields)
        object.__setattr__(document, "__pydantic_fields_set__", set(fields))
        object.__setattr__(document, "__pydantic_extra__", None)
        object.__setattr__(document, "__pydantic_private__", None)
        return document

    @classmethod
    def _faults(cls, fields: dict[str, Any], error: ValidationError) -> list[str]:
        return fault_lines(dict(validation_faults(error, cls)).items())

    def to_json(self) -> str:
        """Return the JSON text, lists of numbers on one line, the same bytes for the same data."""
        return dumps(self.model_dump(mode="json", by_alias=True, exclude_none=True))

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield what one line has room for: fields that were set, and of long ones the size."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if name not in NOT_SHOWN and value != field.get_default(call_default_factory=True):
                yield (None if name == "name" else name), _brief(value)

    # A copy may be of other data, by `model_copy(update=...)`; so what was derived from the data,
    # and is kept by `cached_property` beside the fields, is derived again.

    def __copy__(self) -> Self:
        """Return a copy that keeps nothing that was derived from the fields."""
        return super().__copy__()._fields_only()

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return a deep copy that keeps nothing that was derived from the fields."""
        return super().__deepcopy__(memo)._fields_only()

    def _fields_only(self) -> Self:
        for name in self.__dict__.keys() - type(self).model_fields.keys():
            del self.__dict__[name]
        return self


class CheckedDocument(Document):
    """Base of documents whose fields must fit together: every fault is found, with its path."""

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield faults that concern several fields; must bear fields of wrong types."""
        yield from ()

    @model_validator(mode="after")
    def _no_document_faults(self) -> Self:
        faults = all_lines(self.document_faults(self.model_dump(by_alias=True)))
        if faults:  # a type of its own: `from_document` asks for these faults directly
            text = "; ".join(faults)
            raise PydanticCustomError("document_faults", "{faults}", {"faults": text})
        return self

    @classmethod
    def from_document(cls, document: Any, origin: str = "document") -> Self:
        """Validate a document as it comes out of `json.loads`.

        Raises
        ------
        InstanceError
            With all faults at once, each with its path.
        """
        if not isinstance(document, dict):
            raise InstanceError(origin, [f"document: expected an object, found {shown(document)}"])
        try:
            return cls.model_validate_json(encoded(document, origin), strict=True)
        except ValidationError as error:
            typed = dict(validation_faults(error, cls))
        raise InstanceError(origin, all_lines(cls.document_faults(document), typed))

    @classmethod
    def _faults(cls, fields: dict[str, Any], error: ValidationError) -> list[str]:
        typed = dict(validation_faults(error, cls))
        document = to_jsonable_python(fields, by_alias=True, exclude_none=True, fallback=_plain)
        return all_lines(cls.document_faults(document), typed)


def _plain(value: Any) -> Any:
    """Return arrays as lists; what is no data of a document as nothing."""
    return value.tolist() if hasattr(value, "tolist") else None


class _Size(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _brief(value: Any) -> Any:
    """Return a value as it fits on a line: long lists and parts by their size."""
    if isinstance(value, tuple | dict):
        is_long = len(value) > SHORT or len(repr(value)) > SHORT
        return _Size(f"<{len(value):,}>") if is_long else value
    if isinstance(value, str) and len(value) > SHORT:
        return value[: SHORT - 3] + "..."
    if isinstance(value, Document):
        inner = repr(value)
        return _Size(inner if len(inner) <= SHORT else f"{type(value).__name__}(...)")
    return value


if TYPE_CHECKING:
    OfProblem = Any
else:
    OfProblem = SerializeAsAny[Document] | None
"""A plan or a certificate, of the class of its problem; None if there is none."""
