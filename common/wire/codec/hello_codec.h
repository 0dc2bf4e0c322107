#pragma once
// Internal to the codec. Parts of the messages with clients and with workers: versions,
// capabilities, refusals. Readers throw Refusal (frame.h).

#include <string>
#include <vector>

#include "common/wire/codec/field.h"
#include "common/wire/message.h"
#include "schema/client.capnp.h"

namespace loopfleet::wire {

void WriteVersion(const ProtocolVersion& version, schema::Version::Builder builder);
ProtocolVersion ReadVersion(schema::Version::Reader reader);

// Writes `message.capabilities` into any builder with capabilities.
template <class Message, class Builder>
void WriteCapabilities(const Message& message, Builder builder) {
  if (message.capabilities.empty()) return;
  WriteTexts(message.capabilities,
             builder.initCapabilities(static_cast<unsigned>(message.capabilities.size())));
}
std::vector<std::string> ReadCapabilities(capnp::List<capnp::Text>::Reader list);

void WriteRefused(const Refused& refused, schema::Refused::Builder builder);
Refused ReadRefused(schema::Refused::Reader reader);

}  // namespace loopfleet::wire
