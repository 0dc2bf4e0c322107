#include "kernel/serve_message.h"

#include <gtest/gtest.h>

#include <string>

namespace loopfleet {
namespace {

TEST(ServeMessageTest, RequestsComeBack) {
  const ServeRequest request{.compile = {.code_address = 4096,
                                         .max_code_bytes = 77,
                                         .threads = 3,
                                         .outside = OutsideFunctions::OfThisProcess(),
                                         .ir = "text"},
                             .verify = VerifyWish::kNever};
  const auto any = DecodeServeRequest(Encode(request));
  ASSERT_TRUE(any);
  const auto* const back = std::get_if<ServeRequest>(&*any);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->compile.code_address, 4096U);
  EXPECT_EQ(back->compile.threads, 3U);
  EXPECT_EQ(back->compile.outside, request.compile.outside);
  EXPECT_EQ(back->compile.ir, "text");
  EXPECT_EQ(back->verify, VerifyWish::kNever);
}

TEST(ServeMessageTest, RunsComeBack) {
  const auto any =
      DecodeServeRequest(Encode(IsolatedRunRequest{.threads = 2, .memory_size = 7, .ir = "x"}));
  ASSERT_TRUE(any);
  const auto* const run = std::get_if<IsolatedRunRequest>(&*any);
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->threads, 2U);
  EXPECT_EQ(run->memory_size, 7U);
  EXPECT_EQ(run->ir, "x");
  EXPECT_EQ(DecodeIsolatedRunReply(EncodeIsolatedRunReply(IsolatedRun{.scratch_bytes = 9}))
                ->value()
                .scratch_bytes,
            9U);
  const IsolatedRunReply failed =
      std::unexpected(Failure{.code = FailureCode::kRunCrash, .message = "m"});
  EXPECT_EQ(DecodeIsolatedRunReply(EncodeIsolatedRunReply(failed))->error().code,
            FailureCode::kRunCrash);
  EXPECT_FALSE(DecodeIsolatedRunReply("x"));
}

TEST(ServeMessageTest, RepliesComeBackAndCutOnesAreRefused) {
  Served served{.code_hash = "ab", .verified = Verified::kUnjudged, .remark = "why"};
  served.compiled.code = {.bytes = "code", .entry = 2};
  served.compiled.kernel.buffers = {{.role = BufferSpec::Role::kOutput, .element_count = 9}};
  const std::string bytes = EncodeServeReply(served);
  const auto back = DecodeServeReply(bytes);
  ASSERT_TRUE(back && back->has_value());
  EXPECT_EQ((*back)->compiled.code, served.compiled.code);
  EXPECT_EQ((*back)->compiled.kernel, served.compiled.kernel);
  EXPECT_EQ((*back)->remark, "why");
  EXPECT_EQ((*back)->verified, Verified::kUnjudged);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(DecodeServeReply(bytes.substr(0, n))) << n;
  }
  const auto failed = DecodeServeReply(EncodeServeReply(
      std::unexpected(Failure{.code = FailureCode::kWrongOutput, .message = "by 3"})));
  ASSERT_TRUE(failed && !failed->has_value());
  EXPECT_EQ(failed->error().code, FailureCode::kWrongOutput);
}

}  // namespace
}  // namespace loopfleet
