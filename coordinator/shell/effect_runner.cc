#include "coordinator/shell/effect_runner.h"

#include <cstddef>
#include <iterator>
#include <utility>
#include <variant>

#include "common/base/failpoint.h"
#include "common/wire/bounds.h"
#include "common/wire/codec/codec.h"
#include "coordinator/core/contract/limits.h"

namespace loopfleet::coordinator {
namespace {

constexpr std::size_t kRoom = wire::kMaxMessageBytes - wire::kMessageOverheadBytes;

// Cuts a list of workers that is too long for one frame.
void CutToFrame(wire::CoordinatorMessage& message) {
  auto* list = std::get_if<wire::WorkerList>(&message);
  if (list == nullptr) return;
  std::size_t size = 0;
  std::size_t count = 0;
  while (count < list->workers.size() && count < wire::kMaxWorkersPerList) {
    size += wire::EncodedSize(list->workers[count]);
    if (size > kRoom) break;
    ++count;
  }
  list->workers.resize(count);
}

}  // namespace

void EffectRunner::Run(Effects effects) {
  for (Effect& effect : effects) {
    std::visit([this](auto& one) { Do(std::move(one)); }, effect);
  }
}

void EffectRunner::Do(ReplyToClient effect) {
  Reply(effect.peer, effect.number, std::move(effect.message));
}

void EffectRunner::Do(SendOutcomes effect) { AddRead(std::move(effect)); }

void EffectRunner::Do(AnswerFromStorage effect) {
  if (std::holds_alternative<wire::ListOutcomes>(effect.question) ||
      std::holds_alternative<wire::FindBest>(effect.question)) {
    AddRead(std::move(effect));
  } else {
    Answer(effect);
  }
}

void EffectRunner::AddRead(ReadQueue::Read read) {
  const auto [peer, number] =
      std::visit([](const auto& one) { return std::pair(one.peer, one.number); }, read);
  auto no_room = reads_.Add(std::move(read));
  if (!no_room) return;
  observer_.Observe(Observation{RequestWasRefused{no_room->code}});
  Reply(peer, number,
        wire::Refused{.failure = *std::move(no_room), .retry_after_ms = Limits{}.retry_after_ms});
}

void EffectRunner::ReadNext() {
  const ReadQueue::Read read = reads_.Take();
  if (const auto* page = std::get_if<SendOutcomes>(&read)) {
    Reply(page->peer, page->number, answers_.Outcomes(page->fetch));
  } else {
    Answer(std::get<AnswerFromStorage>(read));
  }
}

void EffectRunner::Answer(const AnswerFromStorage& effect) {
  if (const auto* explain = std::get_if<wire::ExplainJob>(&effect.question)) {
    return Reply(effect.peer, effect.number, answers_.Answer(*explain, effect.job));
  }
  Reply(effect.peer, effect.number,
        std::visit([this](const auto& question) { return answers_.Answer(question); },
                   effect.question));
}

void EffectRunner::Do(SendJob effect) {
  Reply(effect.peer, effect.number, answers_.Job(effect.job, effect.live));
}

void EffectRunner::Do(SendFleet effect) {
  Reply(effect.peer, effect.number,
        observer_.status().Complete(std::move(effect.fleet), effect.question));
}

void EffectRunner::Do(SendToWorker effect) {
  // Pieces of blobs leave most of the room to leases. The worker asks for a lost one again.
  constexpr std::size_t kMostUnreadBytes = std::size_t{8} << 20;
  if (std::holds_alternative<wire::BlobPiece>(effect.command)) {
    if (workers_.unread_bytes() < kMostUnreadBytes) Send(effect.peer, effect.command);
    return;
  }
  if (auto* leases = std::get_if<wire::Leases>(&effect.command)) {
    SendLeases(effect.peer, std::move(*leases));
  } else if (!Send(effect.peer, effect.command)) {
    events_.push_back(WorkerUnreachable{.peer = effect.peer});
  }
}

// If it cannot be sent, the worker's patience ends and it measures.
void EffectRunner::Do(const AnswerCodeLookup& effect) {
  Send(effect.peer, answers_.Answer(effect));
}

void EffectRunner::Do(KeepBlob effect) {
  BlobThread::Request request = std::move(effect);
  if (!blobs_.Add(request)) RefuseBlob(std::get<KeepBlob>(request).from);
}

void EffectRunner::Do(SendBlob effect) {
  BlobThread::Request request = std::move(effect);
  if (!blobs_.Add(request)) RefuseBlob(std::get<SendBlob>(request).to);
}

// A worker asks again by itself.
void EffectRunner::RefuseBlob(const BlobPeer& from) {
  if (!from.number) return;
  Failure failure{.code = FailureCode::kBusy, .message = "too many pieces wait for the disk"};
  observer_.Observe(Observation{RequestWasRefused{failure.code}});
  Reply(from.peer, *from.number,
        wire::Refused{.failure = std::move(failure), .retry_after_ms = Limits{}.retry_after_ms});
}

void EffectRunner::Do(Persist effect) {
  LF_FAILPOINT("coordinator.before_persist");
  storage_.Write(std::move(effect));
}

void EffectRunner::Do(const Observation& observation) { observer_.Observe(observation); }

void EffectRunner::Reply(const PeerId& peer, std::uint64_t number,
                         wire::CoordinatorMessage message) {
  CutToFrame(message);
  std::string frame =
      wire::Encode(wire::CoordinatorReply{.number = number, .message = std::move(message)});
  LF_FAILPOINT("coordinator.before_reply");
  // A client that does not read loses only this reply; it asks again.
  if (clients_.Send(peer, std::move(frame)) != wire::SendResult::kSent) {
    events_.push_back(ClientUnreachable{peer});
  }
  LF_FAILPOINT("coordinator.after_reply");
}

void EffectRunner::SendLeases(const PeerId& peer, wire::Leases leases) {
  auto next = leases.leases.begin();
  while (next != leases.leases.end()) {
    const auto first = next;
    std::size_t size = 0;
    while (next != leases.leases.end() && next - first < wire::kMaxLeasesPerMessage) {
      size += wire::EncodedSize(next->spec);
      if (next != first && size > kRoom) break;
      ++next;
    }
    wire::Leases part;
    part.leases.assign(std::move_iterator(first), std::move_iterator(next));
    const wire::WorkerCommand command = std::move(part);
    LF_FAILPOINT("coordinator.before_leases");
    const bool sent = Send(peer, command);
    LF_FAILPOINT("coordinator.after_leases");
    if (sent) continue;
    WorkerUnreachable unreachable{.peer = peer};
    for (const wire::Lease& lease : std::get<wire::Leases>(command).leases) {
      unreachable.undelivered.push_back(lease.lease);
    }
    for (; next != leases.leases.end(); ++next) unreachable.undelivered.push_back(next->lease);
    events_.push_back(std::move(unreachable));
  }
}

bool EffectRunner::Send(const PeerId& peer, const wire::WorkerCommand& command) {
  // A worker whose queue is full (wire::Router::Options) has not read for a long time: it counts as
  // gone until its next hello.
  return workers_.Send(peer, wire::Encode(command)) == wire::SendResult::kSent;
}

}  // namespace loopfleet::coordinator
