#include "common/wire/codec/hello_codec.h"

#include "common/wire/bounds.h"
#include "common/wire/codec/facts_codec.h"

namespace loopfleet::wire {

void WriteVersion(const ProtocolVersion& version, schema::Version::Builder builder) {
  builder.setMajor(version.major);
  builder.setMinor(version.minor);
}

ProtocolVersion ReadVersion(schema::Version::Reader reader) {
  return {.major = reader.getMajor(), .minor = reader.getMinor()};
}

std::vector<std::string> ReadCapabilities(capnp::List<capnp::Text>::Reader list) {
  return ReadTexts(list, {.entries = kMaxLabels, .entry_bytes = kMaxLabelBytes}, "capabilities");
}

void WriteRefused(const Refused& refused, schema::Refused::Builder builder) {
  WriteFailure(refused.failure, builder.initFailure());
  builder.setRetryAfterMs(refused.retry_after_ms);
}

Refused ReadRefused(schema::Refused::Reader reader) {
  return {.failure = ReadFailure(reader.getFailure()), .retry_after_ms = reader.getRetryAfterMs()};
}

}  // namespace loopfleet::wire
