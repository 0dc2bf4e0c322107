#include "worker/gpu/codegen/cubin_cache.h"

#include <gtest/gtest.h>

#include <string>

namespace loopfleet::worker {
namespace {

// Returns the PTX with the architecture appended.
class EchoAssembler final : public PtxAssembler {
 public:
  Result<Cubin> Assemble(std::string_view ptx, GpuArch arch) override {
    ++calls;
    if (ptx == "bad") return Fail(ErrorKind::kInvalid, "refused");
    return Cubin{.bytes = std::string(ptx) + arch.Name(), .log = ""};
  }
  std::string Version() const override { return "echo 1"; }
  int calls = 0;
};

TEST(CubinCache, AsksOnceForEachTextAndArchitecture) {
  EchoAssembler echo;
  CubinCache cache(echo, 1000);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cache.Assemble("a", GpuArch{80}).value().bytes, "asm_80");
    EXPECT_EQ(cache.Assemble("a", GpuArch{90}).value().bytes, "asm_90");
    EXPECT_EQ(cache.Assemble("b", GpuArch{80}).value().bytes, "bsm_80");
  }
  EXPECT_EQ(echo.calls, 3);
  EXPECT_EQ(cache.hits(), 6U);
  EXPECT_EQ(cache.misses(), 3U);
}

TEST(CubinCache, KeepsNoRefusal) {
  EchoAssembler echo;
  CubinCache cache(echo, 1000);
  EXPECT_FALSE(cache.Assemble("bad", GpuArch{80}).has_value());
  EXPECT_FALSE(cache.Assemble("bad", GpuArch{80}).has_value());
  EXPECT_EQ(echo.calls, 2);
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(CubinCache, DropsWhatWasNotAskedForLongest) {
  EchoAssembler echo;
  CubinCache cache(echo, 60);  // an entry of ten letters takes 10 + 15 bytes
  const std::string a(10, 'a');
  const std::string b(10, 'b');
  const std::string c(10, 'c');
  for (const std::string& text : {a, b, a, c}) (void)cache.Assemble(text, GpuArch{80});
  EXPECT_EQ(echo.calls, 3);
  EXPECT_LE(cache.bytes(), 60U);
  (void)cache.Assemble(a, GpuArch{80});  // still cached
  EXPECT_EQ(echo.calls, 3);
  (void)cache.Assemble(b, GpuArch{80});  // evicted
  EXPECT_EQ(echo.calls, 4);
}

TEST(CubinCache, DoesNotKeepWhatIsLargerThanItself) {
  EchoAssembler echo;
  CubinCache cache(echo, 20);
  const std::string large(100, 'x');
  EXPECT_EQ(cache.Assemble(large, GpuArch{80}).value().bytes, large + "sm_80");
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(GpuArch, ParsesNames) {
  EXPECT_EQ(ParseGpuArch("sm_90").value(), GpuArch{90});
  EXPECT_EQ(ParseGpuArch("sm_120").value().Name(), "sm_120");
  for (const char* wrong : {"", "90", "sm_", "sm_x", "sm_90a", "compute_90", "sm_9000"}) {
    const auto parsed = ParseGpuArch(wrong);
    ASSERT_FALSE(parsed.has_value()) << wrong;
    EXPECT_NE(parsed.error().message.find("sm_90"), std::string::npos);
  }
  EXPECT_NE(ParseGpuArch("sm_60").error().message.find("sm_75"), std::string::npos);
}

}  // namespace
}  // namespace loopfleet::worker
