#include "common/wire/codec/facts_codec.h"

#include <limits>

#include "common/wire/codec/job_codec.h"
#include "common/wire/codec/utf8.h"

namespace loopfleet::wire {
namespace {

constexpr std::int64_t kNoAction = -1;

constexpr EnumTable kDeviceKinds{
    "device kind", std::array{std::pair{schema::DeviceKind::CPU, DeviceKind::kCpu},
                              std::pair{schema::DeviceKind::CUDA, DeviceKind::kCuda}}};

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
  builder.setDevice(kDeviceKinds.ToWire(facts.device));
  builder.setHardwareClass(TextOf(FactText(facts.hardware_class)));
  builder.setModel(TextOf(FactText(facts.model)));
  builder.setIsa(TextOf(FactText(facts.isa)));
  builder.setMicrocode(TextOf(FactText(facts.microcode)));
  builder.setClockMhz(facts.clock_mhz);
  builder.setPhysicalCores(facts.physical_cores);
  builder.setLogicalCores(facts.logical_cores);
  builder.setL1dBytes(facts.l1d_bytes);
  builder.setL2Bytes(facts.l2_bytes);
  builder.setL3Bytes(facts.l3_bytes);
  builder.setMemoryBytes(facts.memory_bytes);
  builder.setHost(TextOf(FactText(facts.host)));
  builder.setKernel(TextOf(FactText(facts.kernel)));
  builder.setPeakFlopPerSecond(facts.peaks.flop_per_second);
  builder.setReadBytesPerSecond(facts.peaks.read_bytes_per_second);
  builder.setTriadBytesPerSecond(facts.peaks.triad_bytes_per_second);
}

HardwareFacts ReadHardware(schema::HardwareFacts::Reader reader) {
  HardwareFacts facts;
  facts.device = kDeviceKinds.FromWire(reader.getDevice());
  facts.hardware_class = ReadFact(reader.getHardwareClass(), "hardware class");
  facts.model = ReadFact(reader.getModel(), "hardware model");
  facts.isa = ReadFact(reader.getIsa(), "instruction set");
  facts.microcode = ReadFact(reader.getMicrocode(), "microcode");
  facts.clock_mhz = ReadFinite(reader.getClockMhz(), "clock");
  facts.physical_cores = reader.getPhysicalCores();
  facts.logical_cores = reader.getLogicalCores();
  facts.l1d_bytes = reader.getL1dBytes();
  facts.l2_bytes = reader.getL2Bytes();
  facts.l3_bytes = reader.getL3Bytes();
  facts.memory_bytes = reader.getMemoryBytes();
  facts.host = ReadFact(reader.getHost(), "host name");
  facts.kernel = ReadFact(reader.getKernel(), "kernel");
  facts.peaks = {
      .flop_per_second = ReadAmount(reader.getPeakFlopPerSecond(), "peak flop/s"),
      .read_bytes_per_second = ReadAmount(reader.getReadBytesPerSecond(), "peak read"),
      .triad_bytes_per_second = ReadAmount(reader.getTriadBytesPerSecond(), "peak triad")};
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
  builder.setCache(kCacheStates.ToWire(conditions.cache));
  builder.setPolicy(TextOf(FactText(conditions.policy)));
  builder.setIsolation(TextOf(FactText(conditions.isolation)));
}

Conditions ReadConditions(schema::Conditions::Reader reader) {
  Conditions conditions;
  conditions.hardware = ReadHardware(reader.getHardware());
  conditions.compiler = ReadCompiler(reader.getCompiler());
  conditions.threads = reader.getThreads();
  conditions.cache = kCacheStates.FromWire(reader.getCache());
  conditions.policy = ReadFact(reader.getPolicy(), "measuring policy");
  conditions.isolation = ReadFact(reader.getIsolation(), "isolation");
  return conditions;
}

}  // namespace loopfleet::wire
