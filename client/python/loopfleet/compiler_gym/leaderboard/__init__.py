"""CompilerGym's leaderboards."""
