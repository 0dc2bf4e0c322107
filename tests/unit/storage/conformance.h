#pragma once
// Conformance: a test that runs on every engine of the store: SQLite, and the model of the
// simulation (tests/support/model_store).

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/open.h"
#include "storage/store.h"
#include "storage/store_reader.h"
#include "tests/support/model_store/model_store.h"
#include "tests/unit/storage/record_samples.h"

namespace loopfleet::storage {

// A database that outlives its Store.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual Result<std::unique_ptr<Store>> Open() = 0;
};

class SqliteFile final : public Engine {
 public:
  SqliteFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lf_store_XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~SqliteFile() override { std::filesystem::remove_all(directory_); }
  Result<std::unique_ptr<Store>> Open() override { return OpenStore(directory_ / "test.db"); }

 private:
  std::filesystem::path directory_;
};

class Model final : public Engine {
 public:
  Result<std::unique_ptr<Store>> Open() override { return ModelStore::Open(database_); }

 private:
  ModelDatabase database_;
};

struct EngineKind {
  const char* name;
  std::unique_ptr<Engine> (*make)();
};

class Conformance : public ::testing::TestWithParam<EngineKind> {
 protected:
  void MustApply(const std::vector<Write>& writes) {
    const Status status = store_->Apply(writes);
    ASSERT_TRUE(status) << status.error().message;
  }
  void ExpectRefused(const std::vector<Write>& writes, ErrorKind kind, std::string_view text) {
    const Status status = store_->Apply(writes);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, kind) << status.error().message;
    EXPECT_NE(status.error().message.find(text), std::string::npos) << status.error().message;
  }
  void Restart() {
    reader_.reset();
    store_.reset();
    store_ = engine_->Open().value();
    reader_ = store_->OpenReader().value();
  }
  // A batch of one job that ended so.
  Outcome End(const Evaluation& evaluation, WallTime at = kThen,
              const std::string& worker = "worker-1") {
    Outcome outcome = SomeOutcome({.batch = ++batch_}, PlainSpec(4), evaluation);
    outcome.finished_at = at;
    outcome.worker = worker;
    MustApply(
        {SomeBatch(batch_, {PlainSpec(4)}), JobFinished{.outcome = outcome, .program = program_}});
    return outcome;
  }
  StoredAnswer Find(const Evaluation& like) { return reader_->FindResult(KeyFor(like)).value(); }

  const ProgramKey program_ = SomeKey(50);
  static constexpr WallTime kThen{std::chrono::hours(480'000)};

  std::uint64_t batch_ = 100;
  std::unique_ptr<Engine> engine_ = GetParam().make();
  std::unique_ptr<Store> store_ = engine_->Open().value();
  std::unique_ptr<StoreReader> reader_ = store_->OpenReader().value();
};

inline const EngineKind kEngines[] = {
    {"sqlite", [] -> std::unique_ptr<Engine> { return std::make_unique<SqliteFile>(); }},
    {"model", [] -> std::unique_ptr<Engine> { return std::make_unique<Model>(); }}};
inline std::string NameOf(const ::testing::TestParamInfo<EngineKind>& engine) {
  return engine.param.name;
}

}  // namespace loopfleet::storage
