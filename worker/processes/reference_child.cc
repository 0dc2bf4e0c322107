#include "worker/processes/reference_child.h"

#include <cstdlib>
#include <new>
#include <optional>
#include <utility>

#include "common/looptree/text/text.h"
#include "worker/processes/child_message.h"
#include "worker/sandbox/confinement.h"
#include "worker/verification/mapped_buffers.h"
#include "worker/verification/workload.h"

namespace loopfleet::worker {
namespace {

// Maps all of the memory.
std::optional<MappedBuffers> MapWhole(int fd, std::size_t size) {
  const PlacedBuffer whole{.offset = 0, .size = size};
  auto mapped = MappedBuffers::Map(fd, size, {&whole, 1}, MappedBuffers::Access::kReadWrite);
  if (mapped) return *std::move(mapped);
  if (mapped.error().kind == ErrorKind::kFull) ExitOutOfMemory();
  return std::nullopt;
}

}  // namespace

int RunReferenceChild(Channel& channel, Isolation isolation) {
  std::set_new_handler(ExitOutOfMemory);
  if (!SealProcess(ChildRole::kReference, isolation, channel.fd())) return kExitNotConfined;
  for (;;) {
    Result<Channel::Message> message = channel.ReceiveWithFds(kMaxRequestBytes);
    if (!message) return kExitOk;
    const auto request = DecodeReferenceRequest(message->bytes);
    if (!request || message->fds.size() != 2) return kExitBadRequest;
    LimitProcessorTime({.wall_seconds = request->time_limit_s});
    const looptree::Checked<looptree::LoopTree> tree = looptree::ParseIr(request->ir);
    if (!tree) return kExitBadRequest;  // the daemon printed it from a valid tree
    auto inputs = MapWhole(message->fds[0].get(), request->inputs_size);
    auto reference = MapWhole(message->fds[1].get(), request->reference_size);
    if (!inputs || !reference) return kExitBadRequest;
    const std::expected<std::vector<bool>, Failure> computed = ComputeReference(
        tree->program(), request->seed, inputs->buffers()[0], reference->buffers()[0]);
    const ReferenceReply reply =
        computed ? ReferenceReply{.exact = *computed, .refusal = ""}
                 : ReferenceReply{.exact = {}, .refusal = computed.error().message};
    if (!channel.Send(Encode(reply), std::nullopt)) return kExitOk;
  }
}

}  // namespace loopfleet::worker
