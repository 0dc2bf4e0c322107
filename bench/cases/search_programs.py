"""The programs that bench/run.sh search judges by, and those that models may be trained on: none is in both."""

from loopfleet.rows import program_of

TEST_PRODUCTS = [f"benchmark://mm-v0/{name}" for name in (
    "mm112_208_256 mm112_224_128 mm112_256_64 mm112_256_80 mm128_160_224 mm160_224_192 mm176_128_160 mm176_144_160 "
    "mm176_192_160 mm192_192_80 mm192_256_256 mm208_128_256 mm208_160_80 mm208_80_224 mm224_112_176 mm224_208_224 "
    "mm224_224_256 mm224_64_240 mm240_208_144 mm256_160_112 mm64_240_64 mm80_176_224 mm96_160_256 mm96_224_240 "
    "mm96_240_128").split()]
TEST_OTHERS = [f"benchmark://{name}" for name in (
    "conv-v0/conv1_16_18_18__32_16_3_3 conv-v0/conv1_32_30_30__32_32_3_3 conv-v0/conv1_64_16_16__64_64_3_3 "
    "conv-v0/conv1_128_9_9__128_128_3_3 conv-v0/conv1_3_58_58__32_3_3_3 conv-v0/conv1_3_62_62__16_3_7_7 "
    "conv-v0/conv1_96_14_14__48_96_1_1 conv-v0/conv1_48_28_28__96_48_1_1 conv-v0/conv4_16_14_14__16_16_3_3 "
    "conv-v0/conv1_8_40_40__8_8_5_5 program-v0/mmbias112_96_160 program-v0/mmbias256_64_64 "
    "program-v0/twomm64_96_48_80 program-v0/twomm128_128_64_96 program-v0/chain200_300 "
    "program-v0/positive_product33_48_160 program-v0/reduce_add300_700 program-v0/reduce_max128_2000 "
    "program-v0/shift200_500 program-v0/conv1d8192_32 mm-v0/mm512_512_512 mm-v0/mm1024_1024_1024").split()]
# Sizes that the test set does not have in this order.
TRAINING_PRODUCTS = [f"benchmark://mm-v0/mm{m}_{n}_{k}" for m, n, k in (
    (64, 64, 64), (64, 128, 256), (64, 256, 128), (80, 80, 80), (80, 240, 160), (96, 96, 96), (96, 176, 208),
    (112, 112, 112), (112, 160, 240), (128, 128, 128), (128, 64, 256), (128, 256, 192), (144, 160, 176), (144, 240, 96),
    (160, 96, 192), (160, 160, 160), (160, 256, 224), (176, 80, 256), (176, 224, 112), (192, 128, 64), (192, 192, 192),
    (192, 240, 176), (208, 112, 240), (208, 208, 208), (208, 256, 128), (224, 96, 160), (224, 224, 96), (224, 256, 192),
    (240, 176, 80), (240, 240, 240), (256, 64, 192), (256, 128, 224), (256, 208, 96), (256, 256, 256))]
TRAINING_OTHERS = [f"benchmark://{name}" for name in (
    "conv-v0/conv1_16_16_16__16_16_3_3 conv-v0/conv1_16_30_30__16_16_3_3 conv-v0/conv1_32_16_16__32_32_3_3 "
    "conv-v0/conv1_64_8_8__64_64_3_3 conv-v0/conv1_3_66_66__16_3_3_3 conv-v0/conv1_3_34_34__32_3_7_7 "
    "conv-v0/conv1_64_28_28__64_64_1_1 conv-v0/conv4_8_12_12__16_8_3_3 program-v0/mmbias64_64_64 "
    "program-v0/mmbias128_64_96 program-v0/mmbias96_192_128 program-v0/twomm32_48_64_32 program-v0/twomm64_64_64_64 "
    "program-v0/twomm96_32_128_64 program-v0/chain64_64 program-v0/chain256_256 program-v0/positive_product33_48_64 "
    "program-v0/positive_product64_64_128 program-v0/reduce_add64_64 program-v0/reduce_add256_512 "
    "program-v0/reduce_max64_100 program-v0/reduce_max256_256 program-v0/shift64_64 program-v0/shift128_300 "
    "program-v0/conv1d1024_8 program-v0/conv1d4096_16").split()]


def training_programs(table):
    return TRAINING_PRODUCTS if table == 1 else TRAINING_OTHERS + TRAINING_PRODUCTS[::3]


def is_judged(benchmark, ir=None):
    """Whether models are judged by this program, under whatever name."""
    return program_of(benchmark, ir)[0] in _JUDGED


_JUDGED = {program_of(benchmark, None)[0] for benchmark in TEST_PRODUCTS + TEST_OTHERS}
