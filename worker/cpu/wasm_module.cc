#include "worker/cpu/wasm_module.h"

#include <fmt/format.h>
#include <llvm/Object/Wasm.h>
#include <llvm/Support/LEB128.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "kernel/kernel.h"

namespace loopfleet::worker {
namespace {

using llvm::object::WasmObjectFile;
using llvm::object::WasmSymbol;
namespace wasm = llvm::wasm;

std::unexpected<Error> Corrupt(std::string_view problem) {
  return Fail(ErrorKind::kCorrupt, fmt::format("WebAssembly object: {}", problem));
}

class Writer {
 public:
  void Number(std::uint64_t number) { llvm::encodeULEB128(number, stream_); }
  void Byte(std::uint8_t byte) { stream_ << static_cast<char>(byte); }
  void Name(llvm::StringRef name) {
    Number(name.size());
    stream_ << name;
  }
  void Section(std::uint32_t id, llvm::StringRef content) {
    Number(id);
    Name(content);
  }
  llvm::StringRef text() const { return text_; }

 private:
  std::string text_;
  llvm::raw_string_ostream stream_{text_};
};

// The memory gets the name that other compilers give it.
Result<std::string> ImportsOf(const WasmObjectFile& object) {
  Writer imports;
  imports.Number(object.imports().size());
  for (const wasm::WasmImport& import : object.imports()) {
    imports.Name("env");
    if (import.Kind == wasm::WASM_EXTERNAL_FUNCTION) {
      imports.Name(import.Field);
      imports.Byte(import.Kind);
      imports.Number(import.SigIndex);
    } else if (import.Kind == wasm::WASM_EXTERNAL_MEMORY) {
      imports.Name("memory");
      imports.Byte(import.Kind);
      imports.Byte(wasm::WASM_LIMITS_FLAG_NONE);
      imports.Number(0);
    } else {
      return Corrupt(fmt::format("it imports {}, which is neither a function nor a memory",
                                 import.Field.str()));
    }
  }
  return imports.text().str();
}

std::optional<std::uint32_t> FunctionIndex(const WasmObjectFile& object, llvm::StringRef name) {
  for (const llvm::object::SymbolRef& symbol : object.symbols()) {
    const WasmSymbol& found = object.getWasmSymbol(symbol);
    if (found.isTypeFunction() && found.isDefined() && found.Info.Name == name) {
      return found.Info.ElementIndex;
    }
  }
  return std::nullopt;
}

std::string ExportOf(std::uint32_t function) {
  Writer exports;
  exports.Number(1);
  exports.Name(kKernelSymbol);
  exports.Byte(wasm::WASM_EXTERNAL_FUNCTION);
  exports.Number(function);
  return exports.text().str();
}

std::string CustomOf(llvm::StringRef name, std::string_view content) {
  Writer custom;
  custom.Name(name);
  return custom.text().str() + std::string(content);
}

}  // namespace

// The numbers that relocations stand for are in the code already: they count the functions and
// types of this object, which are those of the module.
Result<std::string> WasmModuleOf(std::string_view object, std::string_view facts) {
  const llvm::MemoryBufferRef bytes({object.data(), object.size()}, "kernel");
  auto opened = llvm::object::ObjectFile::createWasmObjectFile(bytes);
  if (!opened) return Corrupt(llvm::toString(opened.takeError()));
  const WasmObjectFile& file = **opened;
  LF_TRY(const std::string imports, ImportsOf(file));
  const std::optional<std::uint32_t> kernel = FunctionIndex(file, kKernelSymbol);
  if (!kernel) return Corrupt(fmt::format("it does not define {}", kKernelSymbol));
  std::string module(wasm::WasmMagic, sizeof(wasm::WasmMagic));
  for (unsigned i = 0; i < sizeof(wasm::WasmVersion); ++i) {
    module += static_cast<char>(wasm::WasmVersion >> (8 * i));
  }
  Writer sections;
  for (const llvm::object::SectionRef& section : file.sections()) {
    const llvm::object::WasmSection& content = file.getWasmSection(section);
    const llvm::StringRef raw(reinterpret_cast<const char*>(content.Content.data()),
                              content.Content.size());
    switch (content.Type) {
      case wasm::WASM_SEC_CUSTOM: break;  // for linkers
      case wasm::WASM_SEC_TYPE:
      case wasm::WASM_SEC_FUNCTION: sections.Section(content.Type, raw); break;
      case wasm::WASM_SEC_IMPORT: sections.Section(content.Type, imports); break;
      case wasm::WASM_SEC_CODE:
        sections.Section(wasm::WASM_SEC_EXPORT, ExportOf(*kernel));
        sections.Section(content.Type, raw);
        break;
      default: return Corrupt(fmt::format("it has a section of type {}", content.Type));
    }
  }
  sections.Section(wasm::WASM_SEC_CUSTOM, CustomOf("loopfleet.facts", facts));
  return module + sections.text().str();
}

}  // namespace loopfleet::worker
