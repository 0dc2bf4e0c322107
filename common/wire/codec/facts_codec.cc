#include "common/wire/codec/facts_codec.h"

#include <limits>
#include <type_traits>

#include "common/wire/codec/job_codec.h"
#include "common/wire/codec/utf8.h"

namespace loopfleet::wire {
namespace {

static_assert(IsEnumerant(schema::DeviceKind::CPU, DeviceKind::kCpu) &&
              IsEnumerant(schema::DeviceKind::CUDA, DeviceKind::kCuda));

constexpr std::int64_t kNoAction = -1;

using In = schema::HardwareFacts::Reader;
using Out = schema::HardwareFacts::Builder;
struct HardwarePlaces
    : Place<&HardwareFacts::device, &In::getDevice, &Out::setDevice>,
      Place<&HardwareFacts::hardware_class, &In::getHardwareClass, &Out::setHardwareClass>,
      Place<&HardwareFacts::model, &In::getModel, &Out::setModel>,
      Place<&HardwareFacts::isa, &In::getIsa, &Out::setIsa>,
      Place<&HardwareFacts::microcode, &In::getMicrocode, &Out::setMicrocode>,
      Place<&HardwareFacts::clock_mhz, &In::getClockMhz, &Out::setClockMhz>,
      Place<&HardwareFacts::physical_cores, &In::getPhysicalCores, &Out::setPhysicalCores>,
      Place<&HardwareFacts::logical_cores, &In::getLogicalCores, &Out::setLogicalCores>,
      Place<&HardwareFacts::l1d_bytes, &In::getL1dBytes, &Out::setL1dBytes>,
      Place<&HardwareFacts::l2_bytes, &In::getL2Bytes, &Out::setL2Bytes>,
      Place<&HardwareFacts::l3_bytes, &In::getL3Bytes, &Out::setL3Bytes>,
      Place<&HardwareFacts::memory_bytes, &In::getMemoryBytes, &Out::setMemoryBytes>,
      Place<&HardwareFacts::host, &In::getHost, &Out::setHost>,
      Place<&HardwareFacts::kernel, &In::getKernel, &Out::setKernel>,
      Place<&DevicePeaks::flop_per_second, &In::getPeakFlopPerSecond, &Out::setPeakFlopPerSecond>,
      Place<&DevicePeaks::read_bytes_per_second, &In::getReadBytesPerSecond,
            &Out::setReadBytesPerSecond>,
      Place<&DevicePeaks::triad_bytes_per_second, &In::getTriadBytesPerSecond,
            &Out::setTriadBytesPerSecond> {};

std::optional<std::uint32_t> ReadActionIndex(std::int64_t index) {
  if (index == kNoAction) return std::nullopt;
  if (index < 0 || index > std::numeric_limits<std::uint32_t>::max()) {
    RefuseMalformed(fmt::format("a failure blames action {}", index));
  }
  return static_cast<std::uint32_t>(index);
}

}  // namespace

std::string FactText(std::string_view text) { return ToUtf8(text, kMaxFactBytes); }

std::string ReadFact(capnp::Text::Reader text, std::string_view what) {
  return ReadText(text, kMaxFactBytes, what);
}

void WriteFailure(const Failure& failure, schema::Failure::Builder builder) {
  builder.setCode(static_cast<std::uint16_t>(failure.code));
  builder.setMessage(TextOf(ToUtf8(failure.message, kMaxFailureTextBytes)));
  builder.setActionIndex(failure.action_index ? std::int64_t{*failure.action_index} : kNoAction);
  builder.setSignal(failure.signal);
}

FailureCode ReadFailureCode(std::uint16_t number) {
  if (number == 0) RefuseMalformed("a failure has no code");
  if (const auto code = FailureCodeOf(number)) return *code;
  RefuseUnsupported(fmt::format("failure code {} is not known to this version", number));
}

Failure ReadFailure(schema::Failure::Reader reader) {
  return {.code = ReadFailureCode(reader.getCode()),
          .message = ReadText(reader.getMessage(), kMaxFailureTextBytes, "a failure's text"),
          .action_index = ReadActionIndex(reader.getActionIndex()),
          .signal = reader.getSignal()};
}

void WriteHardware(const HardwareFacts& facts, schema::HardwareFacts::Builder builder) {
  ForEachFact(
      [&]<auto kMember, class T>(const FactOf<kMember>& /*fact*/, const T& value) {
        constexpr auto kSet = PlaceIn<HardwarePlaces, kMember>::kSet;
        if constexpr (std::is_same_v<T, std::string>) {
          (builder.*kSet)(TextOf(FactText(value)));
        } else if constexpr (std::is_same_v<T, DeviceKind>) {
          (builder.*kSet)(static_cast<schema::DeviceKind>(value));
        } else {
          (builder.*kSet)(value);
        }
      },
      facts);
}

HardwareFacts ReadHardware(schema::HardwareFacts::Reader reader) {
  HardwareFacts facts;
  ForEachFact(
      [&]<auto kMember, class T>(const FactOf<kMember>& fact, T& place) {
        const auto value = (reader.*PlaceIn<HardwarePlaces, kMember>::kGet)();
        if constexpr (std::is_same_v<T, std::string>) {
          place = ReadFact(value, fact.name);
        } else if constexpr (std::is_same_v<T, DeviceKind>) {
          place = ReadEnum<DeviceKind>(static_cast<std::uint16_t>(value), fact.name);
        } else if constexpr (std::is_same_v<T, double>) {
          place = ReadAmount(value, fact.name);
        } else {
          place = value;
        }
      },
      facts);
  return facts;
}

void WriteCompiler(const CompilerFacts& facts, schema::CompilerFacts::Builder builder) {
  builder.setLlvm(TextOf(FactText(facts.llvm)));
  builder.setTier(TextOf(FactText(facts.tier)));
  builder.setRevision(TextOf(FactText(facts.revision)));
}

CompilerFacts ReadCompiler(schema::CompilerFacts::Reader reader) {
  return {.llvm = ReadFact(reader.getLlvm(), "LLVM version"),
          .tier = ReadFact(reader.getTier(), "compiler tier"),
          .revision = ReadFact(reader.getRevision(), "lowering revision")};
}

void WriteConditions(const Conditions& conditions, schema::Conditions::Builder builder) {
  WriteHardware(conditions.hardware, builder.initHardware());
  WriteCompiler(conditions.compiler, builder.initCompiler());
  builder.setThreads(conditions.threads);
  builder.setCache(static_cast<schema::CacheState>(conditions.cache));
  builder.setPolicy(TextOf(FactText(conditions.policy)));
  builder.setIsolation(TextOf(FactText(conditions.isolation)));
}

Conditions ReadConditions(schema::Conditions::Reader reader) {
  Conditions conditions;
  conditions.hardware = ReadHardware(reader.getHardware());
  conditions.compiler = ReadCompiler(reader.getCompiler());
  conditions.threads = reader.getThreads();
  conditions.cache =
      ReadEnum<CacheState>(static_cast<std::uint16_t>(reader.getCache()), "cache state");
  conditions.policy = ReadFact(reader.getPolicy(), "measuring policy");
  conditions.isolation = ReadFact(reader.getIsolation(), "isolation");
  return conditions;
}

}  // namespace loopfleet::wire
