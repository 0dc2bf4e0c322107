"""The parts of compiler_gym.util that programs for loop_tool use."""
