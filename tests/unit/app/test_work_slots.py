"""How many works run at once, while the limit changes."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.app.attempts.work import Work
from penstock.app.attempts.work_slots import WorkSlots


def works(count: int) -> list[Work]:
    return [Work([], has_dead_letter=False, clock=lambda: 0.0) for _ in range(count)]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 5)),
        st.tuples(st.just("resize"), st.integers(1, 6)),
        st.tuples(st.just("end"), st.just(0)),
    ),
    max_size=60,
)


@given(limit=st.integers(1, 6), steps=steps)
def test_works_start_in_order_and_no_work_starts_above_the_limit(limit: int, steps: list[tuple[str, int]]) -> None:
    slots = WorkSlots(limit)
    added: list[Work] = []
    started: list[Work] = []
    running = 0
    for step, number in steps:
        begun: list[Work] = []
        if step == "add":
            new = works(number)
            added += new
            begun = slots.add(new)
            running += len(begun)
        elif step == "resize":
            limit = number
            begun = slots.resize(limit)
            running += len(begun)
        elif running:
            following = slots.next()
            begun = [] if following is None else [following]
            running -= following is None
        started += begun
        assert started == added[: len(started)]
        assert slots.running == running
        assert not begun or running <= limit
        assert running >= min(limit, running + len(added) - len(started)), "a work waits though there is room"
