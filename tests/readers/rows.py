"""When are two rows the same? Values of Arrow tables and of the JSON of `strandline query`, brought to one form."""

import collections
import datetime
import decimal
import json

import pyarrow as pa

UTC = datetime.timezone.utc


def instant(value):
    """Microseconds since 1970; without a zone it is UTC's."""
    value = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (value - datetime.datetime(1970, 1, 1, tzinfo=UTC)) // datetime.timedelta(microseconds=1)


def plain(value):
    """What Arrow gave, as JSON can say it."""
    if isinstance(value, datetime.datetime):
        return instant(value)
    if isinstance(value, decimal.Decimal):
        return str(value.normalize())
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, tuple):  # an entry of a map
        return {"key": plain(value[0]), "value": plain(value[1])}
    return value


def typed(value, kind):
    """What the JSON says, read as a value of an Arrow type, and brought to the form of `plain`."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return instant(datetime.datetime.fromisoformat(value.replace("Z", "+00:00")))
    if pa.types.is_decimal(kind):
        return str(decimal.Decimal(str(value)).normalize())
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_integer(kind):
        return int(value)
    if pa.types.is_struct(kind):
        return {field.name: typed(value.get(field.name), field.type) for field in kind}
    if pa.types.is_map(kind):
        return [{"key": typed(k, kind.key_type), "value": typed(v, kind.item_type)} for k, v in value.items()]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if isinstance(value, dict):  # a reader without maps shows them as lists of entries
            key, item = kind.value_type.field(0).type, kind.value_type.field(1).type
            return [{"key": typed(k, key), "value": typed(v, item)} for k, v in value.items()]
        return [typed(inner, kind.value_type) for inner in value]
    return value


def bag(rows):
    """The rows in no order, each as often as it is there."""
    return collections.Counter(json.dumps(row, sort_keys=True) for row in rows)


def theirs(table):
    """The rows of an Arrow table."""
    return bag({name: plain(value) for name, value in row.items()} for row in table.to_pylist())


def ours(lines, schema):
    """The rows of `strandline query --output json`, with the types of a reader's schema."""
    kinds = {field.name: field.type for field in schema}
    rows = []
    for line in lines:
        row = json.loads(line, parse_float=decimal.Decimal)
        strange = row.keys() - kinds.keys()
        assert not strange, f"the reader has no column {sorted(strange)}"
        rows.append({name: typed(row.get(name), kind) for name, kind in kinds.items()})
    return bag(rows)


def difference(left, right, most=5):
    """Some rows that only one side has, as lines."""
    lines = [f"  only strandline: {row}" for row in (left - right).elements()]
    lines += [f"  only the reader: {row}" for row in (right - left).elements()]
    return lines[:most]
