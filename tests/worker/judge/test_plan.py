from worker.judge.plan import BURST_US, plan

MB = 1 << 20


def test_a_burst_of_short_calls_lasts_about_twenty_milliseconds() -> None:
    chosen = plan(fast_us=10, slow_us=10, slot_bytes=6 * MB, arena_bytes=32_000 * MB, cache_bytes=50 * MB)
    assert chosen.calls == BURST_US / 10
    assert chosen.bursts == 2


def test_some_slots_of_every_burst_stay_untouched_and_warm_slots_lie_apart() -> None:
    for fast, arena in ((5.0, 4_000), (50.0, 600), (900.0, 96), (9_000.0, 64)):
        chosen = plan(fast_us=fast, slow_us=fast, slot_bytes=MB, arena_bytes=arena * MB, cache_bytes=2 * MB)
        assert chosen.pool > chosen.calls
        assert chosen.slots <= arena
        assert chosen.warm_calls < max(1, chosen.warm_pool)


def test_too_little_memory_gives_shorter_bursts_and_more_of_them() -> None:
    chosen = plan(fast_us=100, slow_us=100, slot_bytes=MB, arena_bytes=64 * MB, cache_bytes=2 * MB)
    assert chosen.calls < 64
    assert chosen.bursts == 4


def test_a_burst_leaves_the_cache_even_where_calls_are_long() -> None:
    chosen = plan(fast_us=3_000, slow_us=3_000, slot_bytes=MB, arena_bytes=500 * MB, cache_bytes=4 * MB)
    assert chosen.calls == 16


def test_a_call_longer_than_a_burst_is_called_alone_without_a_warm_one() -> None:
    chosen = plan(fast_us=250_000, slow_us=300_000, slot_bytes=4 * MB, arena_bytes=96 * MB, cache_bytes=2 * MB)
    assert (chosen.calls, chosen.warm_calls, chosen.bursts) == (1, 0, 1)


def test_the_slower_side_gets_at_most_three_bursts_of_time() -> None:
    chosen = plan(fast_us=10, slow_us=100, slot_bytes=MB, arena_bytes=9_000 * MB, cache_bytes=MB)
    assert chosen.calls * 100 <= 3 * BURST_US


def test_two_slots_are_enough_to_go_on() -> None:
    chosen = plan(fast_us=100, slow_us=100, slot_bytes=MB, arena_bytes=2 * MB, cache_bytes=MB)
    assert (chosen.calls, chosen.pool, chosen.warm_calls) == (1, 2, 0)
