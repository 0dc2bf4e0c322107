#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "client/python/bindings.h"
#include "client/python/dataset_row.h"
#include "common/base/result.h"
#include "storage/open.h"
#include "storage/outcome_feed.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
T OrThrow(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

class Database {
 public:
  explicit Database(const std::string& path) : reader_(OrThrow(storage::OpenReader(path))) {}

  std::string Incarnation() {
    const std::lock_guard lock(mutex_);
    return OrThrow(reader_->Incarnation()).ToString();
  }

  std::uint64_t FirstOwnBatch() {
    const std::lock_guard lock(mutex_);
    return OrThrow(reader_->FirstOwnBatch()).value;
  }

  // (lost, first_batch, last_batch, unfinished)
  using Restore =
      std::tuple<std::string, std::uint64_t, std::uint64_t, std::map<std::uint64_t, std::uint64_t>>;
  std::vector<Restore> Restores() {
    const std::lock_guard lock(mutex_);
    std::vector<Restore> restores;
    for (const auto& restore : OrThrow(reader_->Restores())) {
      std::map<std::uint64_t, std::uint64_t> unfinished;
      for (const auto& [batch, outcomes] : restore.unfinished) unfinished[batch.value] = outcomes;
      restores.emplace_back(restore.lost.ToString(), restore.first_batch.value,
                            restore.last_batch.value, std::move(unfinished));
    }
    return restores;
  }

  // (rows, last, open, is_end)
  using Step = std::tuple<nb::list, std::uint64_t, std::map<std::uint64_t, std::uint64_t>, bool>;
  Step Next(std::uint64_t last, const std::map<std::uint64_t, std::uint64_t>& open,
            std::uint32_t most) {
    storage::FeedStep step;
    std::vector<std::optional<std::string>> reasons;
    bool is_end = false;
    {
      nb::gil_scoped_release unlocked;
      const std::lock_guard lock(mutex_);
      storage::FeedPosition from{.last = BatchId{last}};
      for (const auto& [batch, sequence] : open) from.open[BatchId{batch}] = sequence;
      step = OrThrow(storage::NextOutcomes(*reader_, from, most));
      is_end = step.waiting == 0 && OrThrow(reader_->ListBatchesAfter(step.after.last, 1)).empty();
      ReadDoubts();
      for (std::size_t i = 0; i < step.outcomes.size(); ++i)
        reasons.push_back(ReasonToDoubt(step, i));
    }
    nb::list rows;
    for (std::size_t i = 0; i < step.outcomes.size(); ++i) {
      nb::object row = DatasetRow(step.outcomes[i]);
      if (row.is_none()) continue;
      if (reasons[i]) row["suspect"] = *reasons[i];
      rows.append(std::move(row));
    }
    std::map<std::uint64_t, std::uint64_t> open_after;
    for (const auto& [batch, sequence] : step.after.open) open_after[batch.value] = sequence;
    return {std::move(rows), step.after.last.value, std::move(open_after), is_end};
  }

 private:
  using FigureKey = std::tuple<SubjectKey, WallTime, std::string>;  // storage::FigureName

  void ReadDoubts() {
    constexpr std::uint32_t kDoubtsPerRead = 1'000;
    while (true) {
      const auto doubts = OrThrow(reader_->ListDoubts(newest_doubt_, kDoubtsPerRead));
      for (const storage::Doubt& doubt : doubts) {
        doubts_.try_emplace({doubt.subject, doubt.measured_at, doubt.worker}, doubt.reason);
      }
      if (doubts.empty()) return;
      newest_doubt_ = doubts.back().number;
    }
  }

  // A doubt about the figure itself comes before one about the figure that it repeats.
  std::optional<std::string> ReasonToDoubt(const storage::FeedStep& step, std::size_t place) const {
    const Outcome& outcome = step.outcomes[place];
    const Evaluation& evaluation = outcome.evaluation;
    if (doubts_.empty() || !evaluation.is_timed()) return std::nullopt;
    if (evaluation.subject) {
      const auto found = doubts_.find({*evaluation.subject, outcome.finished_at, outcome.worker});
      if (found != doubts_.end()) return found->second;
    }
    const auto repeated = step.repeated.find(place);
    if (repeated == step.repeated.end()) return std::nullopt;
    const storage::FigureName& figure = repeated->second;
    const auto found = doubts_.find({figure.subject, figure.measured_at, figure.worker});
    return found == doubts_.end() ? std::nullopt : std::optional(found->second);
  }

  std::mutex mutex_;  // guards all below
  std::unique_ptr<storage::StoreReader> reader_;
  std::map<FigureKey, std::string> doubts_;
  std::int64_t newest_doubt_ = 0;
};

}  // namespace

void BindDatabase(nb::module_& module) {
  nb::class_<Database>(module, "Database",
                       "A coordinator's database file, which it may be writing to. Safe from any "
                       "thread. RuntimeError: it cannot be read.")
      .def(nb::init<const std::string&>(), "path"_a)
      .def_prop_ro("incarnation", &Database::Incarnation, "Names the history of this database.")
      .def_prop_ro("first_own_batch", &Database::FirstOwnBatch,
                   "Batches below came with a restored snapshot; 1: none was restored.")
      .def_prop_ro("restores", &Database::Restores,
                   "By restore, the oldest first: the incarnation that the snapshot was taken of, "
                   "nil if it is not known, the first batch that may have come since, the newest "
                   "of the snapshot, and of its unfinished ones how many outcomes each had.")
      .def("next", &Database::Next, "last"_a, "open"_a, "most"_a,
           "The rows (Outcome.dataset_row(), with `suspect`) of at most about `most` outcomes that "
           "follow a position: the newest batch that was begun, 0 for none, and by batch the "
           "sequence read last, of those that may grow. Returns (rows, last, open, whether nothing "
           "more was there).");
}

}  // namespace loopfleet::python
