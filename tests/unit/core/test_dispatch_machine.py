"""The dispatcher's rules, driven through random histories, in all three orders."""

from hypothesis import settings

from dispatch_machine import DispatchMachine


class KeyOrderMachine(DispatchMachine):
    order = "key"


class NoOrderMachine(DispatchMachine):
    order = "none"


TestPartitionOrder = DispatchMachine.TestCase
TestKeyOrder = KeyOrderMachine.TestCase
TestNoOrder = NoOrderMachine.TestCase
TestPartitionOrder.settings = TestKeyOrder.settings = TestNoOrder.settings = settings(
    max_examples=50, stateful_step_count=60
)
