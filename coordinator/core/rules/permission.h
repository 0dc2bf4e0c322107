#pragma once
// Permission: what each client request requires, in one table, and which roles have it. Pure.
//
// Every client may read everything: a second client can attach to a batch, and outcomes are shared
// between clients anyway (one measurement serves many requests). Changing another client's batch
// requires an admin. So does a request without a row: adding a request means deciding who may make
// it.

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
// Only to its own batches: checked by the handler
inline constexpr Need kNeedOf<wire::SubmitJobs> = Need::kClient;
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
inline constexpr Need kNeedOf<wire::FindBest> = Need::kClient;
template <>
inline constexpr Need kNeedOf<wire::BlobPiece> = Need::kClient;
template <>
inline constexpr Need kNeedOf<wire::BlobWanted> = Need::kClient;
template <>
inline constexpr Need kNeedOf<wire::FlagResults> = Need::kAdmin;
template <>
inline constexpr Need kNeedOf<wire::UnknownMember> =
    Need::kClient;  // it is answered that the request is unknown

enum class Ownership : std::uint8_t { kOwn, kAnothers };

constexpr bool IsPermitted(wire::Role role, Need need, Ownership ownership) {
  if (role == wire::Role::kAdmin) return true;
  if (role != wire::Role::kClient) return false;  // workers have a socket of their own
  return need == Need::kClient || (need == Need::kOwnership && ownership == Ownership::kOwn);
}

// The need of a message of any request variant.
template <class Message>
constexpr Need NeedOf(const Message& message) {
  return std::visit([]<class T>(const T&) { return kNeedOf<std::remove_cvref_t<T>>; }, message);
}

}  // namespace loopfleet::coordinator
