#include "coordinator/core/tables/single_flight_table.h"

#include <sodium/crypto_shorthash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::coordinator {

namespace {

// SipHash, for which no one without the key can make up texts of equal hash.
std::uint64_t Keyed(std::string_view bytes, const QuestionHashKey& key) {
  std::uint64_t hash = 0;
  static_assert(crypto_shorthash_BYTES == sizeof hash);
  static_assert(crypto_shorthash_KEYBYTES == sizeof key);
  crypto_shorthash(reinterpret_cast<unsigned char*>(&hash),
                   reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), key.data());
  return hash;
}

}  // namespace

std::size_t QuestionHash::operator()(const Question& question) const {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // the order of the texts counts
  const auto subject = std::bit_cast<std::array<std::uint64_t, 2>>(question.subject.bytes);
  const std::array<std::uint64_t, 9> fields = {subject[0],
                                               subject[1],
                                               static_cast<std::uint64_t>(question.placement),
                                               question.threads,
                                               static_cast<std::uint64_t>(question.cache),
                                               std::hash<double>{}(question.precision),
                                               static_cast<std::uint64_t>(question.min_grade),
                                               std::hash<double>{}(question.budget_ms),
                                               question.cut_above_ns};
  std::uint64_t hash = Keyed({reinterpret_cast<const char*>(fields.data()), sizeof fields}, key);
  for (const std::string& label : question.labels) hash = hash * kOdd + Keyed(label, key);
  return hash * kOdd + Keyed(question.affinity, key);
}

SingleFlightTable::Entries::iterator SingleFlightTable::At(const Question& question) {
  const auto entry = entries_.find(question);
  LF_CHECK(entry != entries_.end(), "nobody asks for tree {}", question.subject.ToString());
  return entry;
}

void SingleFlightTable::DropIfIdle(Entries::iterator entry) {
  const Entry& e = entry->second;
  if (!e.leader && e.followers.empty() && e.expected == 0 && !e.unsettled) entries_.erase(entry);
}

void SingleFlightTable::Expect(const Question& question) { ++entries_[question].expected; }

void SingleFlightTable::Forget(const Question& question) {
  const auto entry = At(question);
  LF_CHECK(entry->second.expected > 0, "tree {} is not expected", question.subject.ToString());
  --entry->second.expected;
  DropIfIdle(entry);
}

SingleFlightTable::Joined SingleFlightTable::Join(const Question& question, JobId job) {
  Entry& entry = entries_[question];
  if (entry.answer) return entry.answer;
  if (!entry.leader) {
    entry.leader = job;
    return Role::kLeads;
  }
  entry.followers.insert(job);
  return Role::kFollows;
}

bool SingleFlightTable::NeedsToStand(const Question& question, const LinePlace& place) const {
  const Entry& entry = entries_.find(question)->second;
  if (entry.line.empty()) return false;  // the leader has a worker
  const auto best = entry.line.lower_bound({.client = place.client, .below_most = INT32_MIN});
  return best == entry.line.end() || best->first.client != place.client ||
         best->first.below_most > place.below_most;
}

void SingleFlightTable::Stand(const Question& question, const LinePlace& place, JobId job) {
  LF_CHECK(At(question)->second.line.emplace(place, job).second, "job {} stands where one does",
           job);
}

void SingleFlightTable::StepOut(const Question& question, const LinePlace& place, JobId job) {
  auto& line = At(question)->second.line;
  const auto own = line.find(place);
  LF_CHECK(own != line.end() && own->second == job, "job {} does not stand in line", job);
  line.erase(own);
}

std::vector<JobId> SingleFlightTable::Lead(const Question& question, JobId job) {
  Entry& entry = At(question)->second;
  if (entry.leader != job) {
    LF_CHECK(entry.followers.erase(job) == 1, "job {} neither leads nor follows", job);
    entry.followers.insert(*entry.leader);
    entry.leader = job;
  }
  std::vector<JobId> others;
  for (const auto& [place, other] : entry.line) others.push_back(other);
  return others;
}

void SingleFlightTable::Answer(const Question& question, storage::StoredAnswer answer) {
  Entry& entry = At(question)->second;
  LF_CHECK(entry.leader && !entry.answer, "tree {} is answered already",
           question.subject.ToString());
  LF_CHECK(entry.line.empty(), "tree {} is answered and waited for", question.subject.ToString());
  entry.leader.reset();
  entry.answer = std::move(answer);
  entry.unsettled = true;
  if (!entry.followers.empty()) owing_.push_back(question);
}

SingleFlightTable::Owed SingleFlightTable::TakePendingReplies(std::size_t most) {
  Owed owed;
  while (owed.jobs.empty() && !owing_.empty()) {
    Question question = std::move(owing_.front());
    owing_.pop_front();
    const auto entry = entries_.find(question);
    // Its followers left, or it was asked again since.
    if (entry == entries_.end() || !entry->second.answer) continue;
    auto& followers = entry->second.followers;
    while (owed.jobs.size() < most && !followers.empty()) {
      owed.jobs.push_back(followers.extract(followers.begin()).value());
    }
    owed.answer = entry->second.answer;
    if (!followers.empty()) owing_.push_back(std::move(question));
    DropIfIdle(entry);
  }
  return owed;
}

void SingleFlightTable::Settle(const Question& question) {
  const auto entry = At(question);
  LF_CHECK(entry->second.unsettled, "tree {} is settled", question.subject.ToString());
  entry->second.unsettled = false;
  DropIfIdle(entry);
}

std::optional<JobId> SingleFlightTable::Leave(const Question& question, JobId job) {
  const auto entry = At(question);
  Entry& e = entry->second;
  if (e.leader != job) {
    LF_CHECK(e.followers.erase(job) == 1, "job {} neither leads nor follows", job);
    DropIfIdle(entry);
    return std::nullopt;
  }
  e.leader.reset();
  if (!e.followers.empty()) {
    e.leader = e.line.empty() ? *e.followers.begin() : e.line.begin()->second;
    e.followers.erase(*e.leader);
  }
  const std::optional<JobId> successor = e.leader;
  DropIfIdle(entry);
  return successor;
}

std::size_t SingleFlightTable::WorstBucket() const {
  std::size_t worst = 0;
  for (std::size_t bucket = 0; bucket < entries_.bucket_count(); ++bucket) {
    worst = std::max(worst, entries_.bucket_size(bucket));
  }
  return worst;
}

const SingleFlightTable::Entry* SingleFlightTable::Find(const Question& question) const {
  const auto entry = entries_.find(question);
  return entry == entries_.end() ? nullptr : &entry->second;
}

void SingleFlightTable::CheckInvariants() const {
  for (const auto& [question, entry] : entries_) {
    const std::string tree = question.subject.ToString();
    LF_CHECK(entry.leader || !entry.followers.empty() || entry.expected > 0 || entry.unsettled,
             "tree {} is idle", tree);
    LF_CHECK(entry.followers.empty() || entry.leader || entry.answer,
             "tree {}: followers, and neither leader nor answer", tree);
    LF_CHECK(entry.followers.empty() || !entry.answer ||
                 std::ranges::find(owing_, question) != owing_.end(),
             "tree {}: followers whom nobody will answer", tree);
    for (const auto& [place, job] : entry.line) {
      LF_CHECK(entry.leader == job || entry.followers.contains(job), "job {} asks nothing", job);
    }
    LF_CHECK(!entry.answer || !entry.leader, "tree {}: an answer and a leader", tree);
    LF_CHECK(!entry.unsettled || entry.answer, "tree {}: unsettled without an answer", tree);
  }
}

}  // namespace loopfleet::coordinator
