"""The llvmlite side of bench/cases/llvm.cc: random passes on a program, one at a time, as an environment over llvmlite
runs them.

    llvmlite_peer.py FILE.bc SECONDS

prints {"steps", "with_count", "passes_alone", "version", "llvm"}: steps per second of processor time, with the number of
instructions after each, which llvmlite can only count in Python, and without. Each for SECONDS of a processor, in
episodes of 40, without reading the program. The passes are 21 of Passes19; llvmlite's passes over loops end the process
on some programs. Nothing verifies.
"""

import json
import random
import sys
import time

import llvmlite
import llvmlite.binding as llvm

PASSES = (
    "aggressive_dce aggressive_instcombine argument_promotion break_critical_edges constant_merge dead_arg_elimination "
    "dead_code_elimination dead_store_elimination global_dead_code_eliminate global_opt instruction_combine ipsccp "
    "jump_threading mem_copy_opt new_gvn reassociate sccp simplify_cfg sinking sroa tail_call_elimination"
).split()
STEPS_OF_EPISODE = 40


def count(module):
    return sum(1 for function in module.functions for block in function.blocks for _ in block.instructions)


def rate(bitcode, builder, seconds, is_counted):
    chosen, steps, spent = random.Random(17), 0, 0.0
    while spent < seconds:
        module = llvm.parse_bitcode(bitcode)
        for _ in range(STEPS_OF_EPISODE):
            name = chosen.choice(PASSES)
            before = time.process_time()
            manager = llvm.create_new_module_pass_manager()
            getattr(manager, f"add_{name}_pass")()
            manager.run(module, builder)
            if is_counted:
                count(module)
            spent += time.process_time() - before
            steps += 1
            if spent >= seconds:
                break
    return steps / spent, steps


def main():
    bitcode, seconds = open(sys.argv[1], "rb").read(), float(sys.argv[2])
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(opt=2)
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options())
    with_count, steps = rate(bitcode, builder, seconds, True)
    passes_alone, _ = rate(bitcode, builder, seconds, False)
    print(json.dumps({"steps": steps, "with_count": with_count, "passes_alone": passes_alone,
                      "version": llvmlite.__version__, "llvm": list(llvm.llvm_version_info)}))


if __name__ == "__main__":
    main()
