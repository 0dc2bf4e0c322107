#pragma once
// Permission: what each request of clients needs, in one table, and who has it. Pure.
//
// Reading is free for every client: a second client can attach to a batch, and outcomes are shared
// between clients anyway (one measurement, many askers). Changing what is another's needs an admin.
// A request without a row needs an admin: whoever adds a request has to say who may make it.

#include <cstdint>
#include <type_traits>
#include <variant>

#include "common/wire/keys/role.h"
#include "common/wire/message.h"

namespace loopfleet::coordinator {

enum class Need : std::uint8_t {
  kClient,     // any client
  kOwnership,  // the client that the batch belongs to, or an admin
  kAdmin,
};

template <class Request>
inline constexpr Need kNeedOf = Need::kAdmin;

template <>
inline constexpr Need kNeedOf<wire::ClientHello> = Need::kClient;
template <>
inline constexpr Need kNeedOf<wire::SubmitJobs> = Need::kClient;  // to its own batches: see there
template <>
inline constexpr Need kNeedOf<wire::FetchOutcomes> = Need::kClient;
template <>
inline constexpr Need kNeedOf<wire::CancelBatch> = Need::kOwnership;
template <>
inline constexpr Need kNeedOf<wire::ListBatches> = Need::kClient;
template <>
inline constexpr Need kNeedOf<wire::ShowBatch> = Need::kClient;
template <>
inline constexpr Need kNeedOf<wire::ShowJob> = Need::kClient;
template <>
inline constexpr Need kNeedOf<wire::ListWorkers> = Need::kClient;
template <>
inline constexpr Need kNeedOf<wire::ExplainJob> = Need::kClient;
template <>
inline constexpr Need kNeedOf<wire::SetDrain> = Need::kAdmin;
template <>
inline constexpr Need kNeedOf<wire::ListOutcomes> = Need::kClient;
template <>
inline constexpr Need kNeedOf<wire::ShowFleet> = Need::kClient;
template <>
inline constexpr Need kNeedOf<wire::FlagResults> = Need::kAdmin;
template <>
inline constexpr Need kNeedOf<wire::UnknownMember> =
    Need::kClient;  // it is told that it is unknown

enum class Ownership : std::uint8_t { kOwn, kAnothers };

constexpr bool IsPermitted(wire::Role role, Need need, Ownership ownership) {
  if (role == wire::Role::kAdmin) return true;
  if (role != wire::Role::kClient) return false;  // workers have a socket of their own
  return need == Need::kClient || (need == Need::kOwnership && ownership == Ownership::kOwn);
}

// What a message of any variant of requests needs.
template <class Message>
constexpr Need NeedOf(const Message& message) {
  return std::visit([]<class T>(const T&) { return kNeedOf<std::remove_cvref_t<T>>; }, message);
}

}  // namespace loopfleet::coordinator
