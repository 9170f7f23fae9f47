"""Protobuf messages for tests, made without a compiler: nested, and imported from another file."""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_POOL = descriptor_pool.DescriptorPool()


def _field(message: Any, name: str, number: int, kind: int, *, of: str = "", repeated: bool = False) -> None:
    label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    message.field.add(name=name, number=number, type=kind, label=label, type_name=of or None)


def _money() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="shop/money.proto", package="shop", syntax="proto3")
    money = file.message_type.add(name="Money")
    _field(money, "cents", 1, _Field.TYPE_INT64)
    _field(money, "currency", 2, _Field.TYPE_STRING)
    return file


def _order(*, name: str = "shop/order.proto", newer: bool = False) -> Any:
    file = descriptor_pb2.FileDescriptorProto(name=name, package="shop", syntax="proto3")
    file.dependency.append("shop/money.proto")
    note = file.message_type.add(name="Note")
    _field(note, "text", 1, _Field.TYPE_STRING)
    order = file.message_type.add(name="Order")
    _field(order, "id", 1, _Field.TYPE_INT32 if not newer else _Field.TYPE_INT64)
    _field(order, "customer", 2, _Field.TYPE_STRING)
    _field(order, "items", 3, _Field.TYPE_MESSAGE, of=".shop.Order.Item", repeated=True)
    _field(order, "total", 4, _Field.TYPE_MESSAGE, of=".shop.Money")
    if newer:
        _field(order, "vip", 5, _Field.TYPE_BOOL)
    item = order.nested_type.add(name="Item")
    _field(item, "sku", 1, _Field.TYPE_STRING)
    _field(item, "count", 2, _Field.TYPE_INT32)
    _field(item, "part", 3, _Field.TYPE_MESSAGE, of=".shop.Order.Item")
    return file


def _class(pool: descriptor_pool.DescriptorPool, name: str) -> Any:
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


_POOL.Add(_money())
_POOL.Add(_order())
Note, Order, Item, Money = (_class(_POOL, f"shop.{name}") for name in ("Note", "Order", "Order.Item", "Money"))

_NEWER_POOL = descriptor_pool.DescriptorPool()
_NEWER_POOL.Add(_money())
_NEWER_POOL.Add(_order(newer=True))
NewerOrder = _class(_NEWER_POOL, "shop.Order")


def _bill(*, newer: bool) -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="shop/bill.proto", package="shop", syntax="proto3")
    file.dependency.append("shop/money.proto")
    refund = file.message_type.add(name="Refund")
    _field(refund, "number", 1, _Field.TYPE_INT32)
    bill = file.message_type.add(name="Bill")
    _field(bill, "number", 1, _Field.TYPE_INT32)
    _field(bill, "total", 2, _Field.TYPE_MESSAGE, of=".shop.Money")
    _field(bill, "tags", 3, _Field.TYPE_STRING, repeated=True)
    if newer:
        _field(bill, "paid", 4, _Field.TYPE_BOOL)
    return file


_POOL.Add(_bill(newer=False))
_NEWER_POOL.Add(_bill(newer=True))
Refund, Bill = (_class(_POOL, f"shop.{name}") for name in ("Refund", "Bill"))
NewerBill = _class(_NEWER_POOL, "shop.Bill")
# Other code must find the messages in this module by this name, like messages from the compiler.
NewerBill.__module__, NewerBill.__qualname__ = __name__, "NewerBill"
