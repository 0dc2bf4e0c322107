#pragma once
// Internal to the codec. Failures, and the facts about hardware, compiler and conditions:
// schema/outcome.capnp. Readers throw Refusal (frame.h). Writers truncate texts to their bounds and
// convert them to UTF-8, because they come from hosts, compilers and the operating system.

#include <string>
#include <string_view>

#include "common/job/failure.h"
#include "common/job/hardware_facts.h"
#include "common/job/outcome.h"
#include "common/wire/bounds.h"
#include "common/wire/codec/field.h"
#include "schema/outcome.capnp.h"

namespace loopfleet::wire {

void WriteFailure(const Failure& failure, schema::Failure::Builder builder);
Failure ReadFailure(schema::Failure::Reader reader);
FailureCode ReadFailureCode(std::uint16_t number);

void WriteHardware(const HardwareFacts& facts, schema::HardwareFacts::Builder builder);
HardwareFacts ReadHardware(schema::HardwareFacts::Reader reader);

void WriteCompiler(const CompilerFacts& facts, schema::CompilerFacts::Builder builder);
CompilerFacts ReadCompiler(schema::CompilerFacts::Reader reader);

void WriteConditions(const Conditions& conditions, schema::Conditions::Builder builder);
Conditions ReadConditions(schema::Conditions::Reader reader);

// Names and facts: FactText prepares one for writing, ReadFact reads and checks one.
std::string FactText(std::string_view text);
std::string ReadFact(capnp::Text::Reader text, std::string_view what);

}  // namespace loopfleet::wire
