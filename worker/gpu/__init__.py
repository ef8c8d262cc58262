"""What recorder, launcher and judge share of the GPU: driver calls, the arena, replay, NVML. No torch, no CuPy."""
