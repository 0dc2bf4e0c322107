#include "worker/serve/kernel_server.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/looptree/text/text.h"
#include "tests/unit/worker/processes/children_fixture.h"

namespace loopfleet::worker {
namespace {

class KernelServerTest : public ChildrenFixture {
 protected:
  void SetUp() override {
    ChildrenFixture::SetUp();
    children_ = std::make_unique<PreparerChildren>(
        *fork_server_, WorkerConfig{.compile_limit = kPatience, .run_limit = kPatience},
        Listener());
    server_ = std::make_unique<KernelServer>(
        KernelServer::Parts{.children = *children_, .code = *code_, .known = known_});
  }
  ServeReply Serve(std::int64_t elements, VerifyWish verify = VerifyWish::kOnce) {
    return server_->Answer({.compile = {.code_address = 4096,
                                        .max_code_bytes = std::size_t{64} << 10,
                                        .ir = looptree::IrTextOf(AddOf(elements).start)},
                            .verify = verify});
  }
  FailureCode FailureOf(Fault fault) {
    const ServeReply reply = Serve(static_cast<std::int64_t>(fault));
    EXPECT_FALSE(reply);
    return reply ? FailureCode::kUnsupported : reply.error().code;
  }

  KnownCode known_{""};
  std::unique_ptr<PreparerChildren> children_;
  std::unique_ptr<KernelServer> server_;
};

TEST_F(KernelServerTest, RightCodeIsVerifiedOnce) {
  const ServeReply first = Serve(8);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->verified, Verified::kRight);
  EXPECT_EQ(first->compiled.kernel.buffers.size(), 3U);
  EXPECT_FALSE(first->compiled.code.bytes.empty());
  const ServeReply second = Serve(8);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->verified, Verified::kBefore);
  EXPECT_EQ(second->code_hash, first->code_hash);
}

TEST_F(KernelServerTest, WrongCodeIsNotServed) {
  EXPECT_EQ(FailureOf(Fault::kWrongOutput), FailureCode::kWrongOutput);
  EXPECT_EQ(FailureOf(Fault::kBeside), FailureCode::kWrongOutput);
  EXPECT_EQ(FailureOf(Fault::kCrash), FailureCode::kRunCrash);
  EXPECT_EQ(FailureOf(Fault::kPageBeside), FailureCode::kRunCrash);
  EXPECT_EQ(FailureOf(Fault::kCompilerJunk), FailureCode::kCompileError);
  EXPECT_EQ(FailureOf(Fault::kRefused), FailureCode::kUnsupported);
  EXPECT_EQ(FailureOf(Fault::kWrongOutput), FailureCode::kWrongOutput) << "again: not remembered";
}

TEST_F(KernelServerTest, UnlessThatIsWished) {
  const ServeReply reply =
      Serve(static_cast<std::int64_t>(Fault::kWrongOutput), VerifyWish::kNever);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->verified, Verified::kNo);
}

TEST_F(KernelServerTest, ATextThatIsNoTreeIsRefused) {
  const ServeReply reply = server_->Answer({.compile = {.ir = "no tree"}});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, FailureCode::kInvalidBenchmark);
}

}  // namespace
}  // namespace loopfleet::worker
