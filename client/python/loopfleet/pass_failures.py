"""The failures of jobs that are the work of their LLVM passes."""

# What a pass did wrong, which ends an episode. Any other failure is the fleet's, or the request's.
PASS_FAILURES = ("COMPILE_ERROR", "COMPILE_TIMEOUT", "COMPILE_OOM", "SANDBOX_VIOLATION")
