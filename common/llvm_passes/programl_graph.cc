#include "common/llvm_passes/programl_graph.h"

#include <nlohmann/json.hpp>
#include <zstd.h>

#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::passes {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are copied as they are");
constexpr int kLevel = 1;  // graphs are made at every step: speed counts

// Encodes and decodes with one list of fields.
class Writer {
 public:
  template <class T>
  void Column(const std::vector<T>& column) {
    Count(column.size());
    Append(column.data(), column.size() * sizeof(T));
  }
  void Texts(const std::vector<std::string>& texts) {
    Count(texts.size());
    for (const std::string& text : texts) {
      Count(text.size());
      Append(text.data(), text.size());
    }
  }
  std::string Take() { return std::move(bytes_); }

 private:
  void Count(std::size_t count) {
    const auto number = static_cast<std::uint32_t>(count);
    Append(&number, sizeof number);
  }
  void Append(const void* data, std::size_t size) {
    if (size > 0) bytes_.append(static_cast<const char*>(data), size);
  }
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  void Column(std::vector<T>& column) {
    const std::size_t count = Count();
    const std::string_view bytes = Take(count * sizeof(T));
    if (!ok_) return;
    column.resize(count);
    if (count > 0) std::memcpy(column.data(), bytes.data(), bytes.size());
  }
  void Texts(std::vector<std::string>& texts) {
    const std::size_t count = Count();
    for (std::size_t i = 0; i < count && ok_; ++i) texts.emplace_back(Take(Count()));
  }
  bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
  std::size_t Count() {
    std::uint32_t number = 0;
    const std::string_view bytes = Take(sizeof number);
    if (ok_) std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }
  std::string_view Take(std::size_t size) {
    if (!ok_ || size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }
  std::string_view rest_;
  bool ok_ = true;
};

template <class Archive, class Graph>
void Fields(Archive& archive, Graph& graph) {
  archive.Texts(graph.texts);
  archive.Column(graph.node_type);
  archive.Column(graph.node_text);
  archive.Column(graph.node_function);
  archive.Column(graph.node_block);
  archive.Column(graph.edge_flow);
  archive.Column(graph.edge_position);
  archive.Column(graph.edge_source);
  archive.Column(graph.edge_target);
}

bool IsWellFormed(const ProgramlGraph& graph) {
  const std::size_t nodes = graph.node_type.size();
  const std::size_t edges = graph.edge_flow.size();
  if (graph.node_text.size() != nodes || graph.node_function.size() != nodes ||
      graph.node_block.size() != nodes || graph.edge_position.size() != edges ||
      graph.edge_source.size() != edges || graph.edge_target.size() != edges) {
    return false;
  }
  for (std::size_t i = 0; i < nodes; ++i) {
    if (graph.node_type[i] > ProgramlGraph::NodeType::kConstant) return false;
    if (graph.node_text[i] >= graph.texts.size()) return false;
  }
  for (std::size_t i = 0; i < edges; ++i) {
    if (graph.edge_flow[i] > ProgramlGraph::Flow::kCall) return false;
    if (graph.edge_source[i] >= nodes || graph.edge_target[i] >= nodes) return false;
  }
  return true;
}

}  // namespace

std::string Encode(const ProgramlGraph& graph) {
  Writer writer;
  Fields(writer, graph);
  const std::string plain = writer.Take();
  std::string packed(ZSTD_compressBound(plain.size()), '\0');
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), kLevel);
  LF_CHECK(ZSTD_isError(size) == 0, "zstd: {}", ZSTD_getErrorName(size));
  packed.resize(size);
  return packed;
}

Result<ProgramlGraph> DecodePrograml(std::string_view bytes) {
  const auto corrupt = [] { return Fail(ErrorKind::kCorrupt, "this is no ProGraML graph"); };
  const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  // Errors and unknown sizes are the largest numbers.
  if (size > kMaxProgramlBytes) return corrupt();
  std::string plain(size, '\0');
  if (ZSTD_decompress(plain.data(), plain.size(), bytes.data(), bytes.size()) != size) {
    return corrupt();
  }
  Reader reader(plain);
  ProgramlGraph graph;
  Fields(reader, graph);
  if (!reader.AtEnd() || !IsWellFormed(graph)) return corrupt();
  return graph;
}

std::string ToNodeLinkJson(const ProgramlGraph& graph, std::span<const std::string> full_texts) {
  using Json = nlohmann::json;
  Json nodes = Json::array();
  for (std::size_t i = 0; i < graph.node_type.size(); ++i) {
    nodes.push_back({{"id", i},
                     {"type", graph.node_type[i]},
                     {"text", graph.texts[graph.node_text[i]]},
                     {"function", graph.node_function[i]},
                     {"block", graph.node_block[i]}});
    if (i == 0 || full_texts.empty()) continue;
    nodes.back()["features"] = {{"full_text", Json::array({full_texts[i]})}};
  }
  Json links = Json::array();
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> keys;
  for (std::size_t i = 0; i < graph.edge_flow.size(); ++i) {
    links.push_back({{"flow", graph.edge_flow[i]},
                     {"position", graph.edge_position[i]},
                     {"source", graph.edge_source[i]},
                     {"target", graph.edge_target[i]},
                     {"key", keys[{graph.edge_source[i], graph.edge_target[i]}]++}});
  }
  return Json{{"directed", true},
              {"multigraph", true},
              {"graph", Json::object()},
              {"nodes", std::move(nodes)},
              {"links", std::move(links)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);  // type names are any bytes
}

}  // namespace loopfleet::passes
