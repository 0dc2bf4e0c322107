#include "worker/cpu/source_lines.h"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/DebugInfo/DWARF/DWARFDebugLine.h>
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "kernel/kernel.h"

namespace loopfleet::worker {
namespace {

std::unexpected<Error> Unreadable(std::string why) {
  return Fail(ErrorKind::kCorrupt, "the kernel's line numbers cannot be read: " + std::move(why));
}

Result<std::unique_ptr<llvm::object::ObjectFile>> Open(std::string_view object) {
  const llvm::MemoryBufferRef buffer(llvm::StringRef(object.data(), object.size()), "kernel");
  auto file = llvm::object::ObjectFile::createObjectFile(buffer);
  if (!file) return Unreadable(llvm::toString(file.takeError()));
  return std::move(*file);
}

// A section that is in memory when the code runs.
struct LoadedSection {
  // A place that the linker fills in.
  struct Hole {
    std::uint64_t offset = 0;
    std::uint64_t type = 0;
    std::string symbol;
    std::int64_t addend = 0;
    friend bool operator==(const Hole&, const Hole&) = default;
  };
  std::string name;
  std::string bytes;
  std::vector<Hole> holes;
  friend bool operator==(const LoadedSection&, const LoadedSection&) = default;
};

bool IsLoaded(const llvm::object::SectionRef& section) {
  return (llvm::object::ELFSectionRef(section).getFlags() & llvm::ELF::SHF_ALLOC) != 0;
}

std::vector<LoadedSection::Hole> HolesOf(const llvm::object::SectionRef& relocations) {
  std::vector<LoadedSection::Hole> holes;
  for (const llvm::object::ELFRelocationRef each : relocations.relocations()) {
    LoadedSection::Hole hole{.offset = each.getOffset(), .type = each.getType()};
    if (auto addend = each.getAddend()) {
      hole.addend = *addend;
    } else {
      llvm::consumeError(addend.takeError());
    }
    if (auto name = each.getSymbol()->getName()) {
      hole.symbol = name->str();
    } else {
      llvm::consumeError(name.takeError());
    }
    holes.push_back(std::move(hole));
  }
  return holes;
}

Result<std::vector<LoadedSection>> LoadedSectionsOf(std::string_view object) {
  LF_TRY(const auto file, Open(object));
  if (!file->isELF()) return Unreadable("the object is no ELF file");
  std::vector<LoadedSection> sections;
  for (const llvm::object::SectionRef& section : file->sections()) {
    auto relocated = section.getRelocatedSection();
    if (!relocated) return Unreadable(llvm::toString(relocated.takeError()));
    const bool fills = *relocated != file->section_end() && IsLoaded(**relocated);
    if (!fills && !IsLoaded(section)) continue;
    auto name = fills ? (*relocated)->getName() : section.getName();
    auto bytes = section.getContents();
    if (!name || !bytes) {
      std::string why = name ? "" : llvm::toString(name.takeError());
      if (!bytes) why += llvm::toString(bytes.takeError());
      return Unreadable(std::move(why));
    }
    LoadedSection loaded{.name = name->str(), .bytes = fills ? "" : bytes->str(), .holes = {}};
    if (fills) loaded.holes = HolesOf(section);
    sections.push_back(std::move(loaded));
  }
  return sections;
}

std::optional<ProfilePlace> PlaceAt(std::uint32_t line, std::uint32_t column) {
  if (line == 0 || column > static_cast<std::uint32_t>(ProfilePart::kOutside)) return std::nullopt;
  return ProfilePlace{.ref = line - 1, .part = static_cast<ProfilePart>(column)};
}

// Instructions without a place (copies between registers, values made again) belong to what follows
// them in the same function.
void AddRows(const llvm::DWARFDebugLine::LineTable& table, std::uint64_t entry,
             std::vector<CodeSpan>& spans) {
  std::optional<std::int64_t> open;  // the start of instructions whose place is not yet known
  for (const llvm::DWARFDebugLine::Row& row : table.Rows) {
    const std::int64_t begin =
        static_cast<std::int64_t>(row.Address.Address) - static_cast<std::int64_t>(entry);
    const auto place = row.EndSequence ? ProfilePlace{.part = ProfilePart::kOutside}
                                       : PlaceAt(row.Line, row.Column);
    if (place) {
      spans.push_back({.begin = open.value_or(begin), .place = *place});
      open.reset();
    } else if (!open) {
      open = begin;
    }
  }
}

}  // namespace

struct SourceLines::Info {
  explicit Info(llvm::Module& module) : builder(module) {}
  llvm::DIBuilder builder;
  llvm::DIFile* file = nullptr;
};

SourceLines::SourceLines(llvm::Module& module, const PlanPlaces& places)
    : places_(places), info_(std::make_unique<Info>(module)) {
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  info_->file = info_->builder.createFile("tree", "");
  info_->builder.createCompileUnit(llvm::dwarf::DW_LANG_C11, info_->file, "loopfleet",
                                   /*isOptimized=*/true, "", 0, "",
                                   llvm::DICompileUnit::LineTablesOnly);
}

SourceLines::~SourceLines() = default;

void SourceLines::AddFunction(llvm::Function& function) {
  auto* type = info_->builder.createSubroutineType(info_->builder.getOrCreateTypeArray({}));
  function.setSubprogram(info_->builder.createFunction(
      info_->file, function.getName(), function.getName(), info_->file, 0, type, 0,
      llvm::DINode::FlagZero, llvm::DISubprogram::SPFlagDefinition));
}

void SourceLines::Finish() { info_->builder.finalize(); }

struct SourceLines::Scope::Before {
  llvm::DebugLoc location;
};

SourceLines::Scope::Scope(SourceLines* lines, llvm::IRBuilderBase& builder,
                          const ProfilePlace& place)
    : lines_(lines), builder_(builder) {
  if (lines_ != nullptr) Set(place);
}

SourceLines::Scope::Scope(SourceLines* lines, llvm::IRBuilderBase& builder, LoopId loop)
    : lines_(lines), builder_(builder) {
  if (lines_ != nullptr) Set(lines_->places_.loops[loop]);
}

SourceLines::Scope::Scope(SourceLines* lines, llvm::IRBuilderBase& builder,
                          const Statement& statement, ProfilePart part)
    : lines_(lines), builder_(builder) {
  if (lines_ == nullptr) return;
  ProfilePlace place = lines_->places_.statements.at(&statement);
  if (part != ProfilePart::kNode) place.part = part;
  Set(place);
}

void SourceLines::Scope::Set(const ProfilePlace& place) {
  before_ = std::make_unique<Before>(builder_.getCurrentDebugLocation());
  llvm::DISubprogram* function = builder_.GetInsertBlock()->getParent()->getSubprogram();
  builder_.SetCurrentDebugLocation(llvm::DILocation::get(
      builder_.getContext(), place.ref + 1, static_cast<unsigned>(place.part), function));
}

SourceLines::Scope::~Scope() {
  if (lines_ != nullptr) builder_.SetCurrentDebugLocation(before_->location);
}

Result<bool> HaveSameCode(std::string_view a, std::string_view b) {
  LF_TRY(const std::vector<LoadedSection> of_a, LoadedSectionsOf(a));
  LF_TRY(const std::vector<LoadedSection> of_b, LoadedSectionsOf(b));
  return of_a == of_b;
}

Result<std::vector<CodeSpan>> SpansOf(std::string_view object) {
  LF_TRY(const auto file, Open(object));
  std::optional<std::uint64_t> entry;
  for (const llvm::object::SymbolRef& symbol : file->symbols()) {
    auto name = symbol.getName();
    auto address = symbol.getAddress();
    if (name && address && *name == kKernelSymbol) entry = *address;
    if (!name) llvm::consumeError(name.takeError());
    if (!address) llvm::consumeError(address.takeError());
  }
  if (!entry) return Unreadable("there is no kernel");
  const auto context = llvm::DWARFContext::create(*file);
  std::vector<CodeSpan> spans;
  for (const auto& unit : context->compile_units()) {
    if (const auto* table = context->getLineTableForUnit(unit.get())) {
      AddRows(*table, *entry, spans);
    }
  }
  if (spans.empty()) return Unreadable("there are none");
  std::ranges::stable_sort(spans, {}, &CodeSpan::begin);
  return spans;
}

}  // namespace loopfleet::worker
