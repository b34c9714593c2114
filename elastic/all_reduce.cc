#include "elastic/all_reduce.h"

#include <fmt/core.h>

#include <algorithm>

#include "elastic/shard_order.h"

namespace sluice::elastic {
namespace {

// Slices begin where a vector register and a cache line may begin.
constexpr size_t kAlignment = 16;
constexpr size_t kBlock = 1024;  // 4 KiB of each of many lanes
constexpr uint32_t kScatter = 0x5343;
constexpr uint32_t kGather = 0x4741;
// Of a table in one step: more than any batch touches, few enough to be counted in bytes.
constexpr uint64_t kMostRows = uint64_t{1} << 32;
// A list of rows has room for so many before the first has come.
constexpr uint64_t kRowsAtOnce = uint64_t{1} << 14;

template <typename T>
std::span<const std::byte> Bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}
template <typename T>
std::span<std::byte> Writable(std::vector<T>* values) {
  return std::as_writable_bytes(std::span(*values));
}

}  // namespace

void AddTo(std::span<float> left, std::span<const float> right) {
  float* to = left.data();
  const float* from = right.data();
  for (size_t i = 0; i < right.size(); ++i) {
    to[i] += from[i];
  }
}

void Merge(FlatGradient* left, const FlatGradient& right, std::span<const uint32_t> dimensions) {
  AddTo(left->dense, right.dense);
  for (size_t t = 0; t < dimensions.size(); ++t) {
    MergeRows(&left->tables[t], right.tables[t], dimensions[t]);
  }
}

// A block of all slices at a time, which stays in the processor's cache up the whole tree: each
// number comes once from memory.
void AddSlices(std::span<const std::span<float>> slices, float factor, std::span<float> sum) {
  std::vector<std::optional<std::span<float>>> block(slices.size());
  for (size_t begin = 0; begin < sum.size(); begin += kBlock) {
    const size_t size = std::min(kBlock, sum.size() - begin);
    for (size_t lane = 0; lane < slices.size(); ++lane) {
      block[lane].reset();
      if (!slices[lane].empty()) {
        block[lane] = slices[lane].subspan(begin, size);
      }
    }
    AddAlongTree(std::span(block),
                 [](std::span<float>* left, std::span<float> right) { AddTo(*left, right); });
    if (!block[0].has_value()) {
      return;
    }
    const float* from = block[0]->data();
    float* to = sum.data() + begin;
    for (size_t i = 0; i < size; ++i) {
      to[i] = from[i] * factor;
    }
  }
}

struct AllReduce::Header {
  int64_t world = 0;
  int64_t step = 0;
  uint32_t phase = 0;
  uint32_t lanes = 0;
  uint32_t notes = 0;
  uint32_t nodes = 0;  // that have a sum
  uint32_t reconvene = 0;
  uint32_t tables = 0;
};

// The dense numbers are in a node's own memory or in what came from a peer.
struct AllReduce::Part {
  std::span<float> dense;
  std::vector<RowGradients>* tables = nullptr;
};

// Reads a peer's message piece by piece, each where it belongs. A peer's numbers are not believed:
// a piece has room when it is its turn, and a list of rows grows as they come.
struct AllReduce::Inbound {
  Header expected;
  Header header;
  size_t slice = 0;  // dense numbers of each node
  std::span<const uint32_t> dimensions;
  std::vector<LaneNote> notes;
  std::vector<uint32_t> begins;  // of the nodes
  std::vector<uint64_t> counts;  // of rows: node, table
  std::vector<std::vector<float>> dense;
  std::vector<std::vector<RowGradients>> rows;  // node, table
  // Where the sums of a gather go: the dense ones straight to their place.
  std::span<float> place;

  void Start(const Header& expect, size_t numbers, std::span<float> straight) {
    expected = expect;
    slice = numbers;
    place = straight;
    step_ = Step::kHeader;
  }
  Result<std::span<std::byte>> Next() {
    for (;;) {
      ASSIGN_OR_RETURN(const std::span<std::byte> target, Piece());
      if (!target.empty() || step_ == Step::kEnd) {
        return target;
      }
    }
  }

 private:
  enum class Step { kHeader, kNotes, kBegins, kCounts, kDense, kIds, kValues, kEnd };

  Result<std::span<std::byte>> Piece() {
    switch (step_) {
      case Step::kHeader:
        step_ = Step::kNotes;
        return std::as_writable_bytes(std::span(&header, 1));
      case Step::kNotes:
        RETURN_IF_ERROR(Prepare());
        step_ = Step::kBegins;
        return Writable(&notes);
      case Step::kBegins:
        step_ = Step::kCounts;
        return Writable(&begins);
      case Step::kCounts:
        step_ = Step::kDense;
        node_ = 0;
        return Writable(&counts);
      case Step::kDense:
        return NextDense();
      case Step::kIds:
        return More(&Table().ids, Count(), 1, Step::kValues);
      case Step::kValues:
        return NextValues();
      case Step::kEnd:
        break;
    }
    return std::span<std::byte>();
  }
  std::span<std::byte> NextDense() {
    if (node_ == header.nodes) {
      node_ = 0;
      table_ = 0;
      step_ = header.nodes > 0 && !dimensions.empty() ? Step::kIds : Step::kEnd;
      if (step_ == Step::kIds) {
        Table().ids.clear();
      }
      return {};
    }
    std::vector<float>& node = dense[node_++];
    if (!place.empty()) {
      return std::as_writable_bytes(place);
    }
    node.resize(slice);
    return Writable(&node);
  }
  Result<std::span<std::byte>> NextValues() {
    ASSIGN_OR_RETURN(const std::span<std::byte> more,
                     More(&Table().values, Count(), dimensions[table_], Step::kIds));
    if (step_ == Step::kIds) {  // that was all of this table
      table_ = (table_ + 1) % dimensions.size();
      node_ += table_ == 0 ? 1 : 0;
      if (node_ == header.nodes) {
        step_ = Step::kEnd;
      } else {
        Table().ids.clear();
      }
    }
    return more;
  }
  // Room for the next numbers of a list of `count` times `width`; nothing: it is complete.
  template <typename Number>
  Result<std::span<std::byte>> More(std::vector<Number>* list, uint64_t count, uint64_t width,
                                    Step then) {
    if (count > kMostRows) {
      return Unavailable(fmt::format("a worker sends {} rows of a table", count));
    }
    const uint64_t have = list->size();
    if (have == count * width) {
      step_ = then;
      if (then == Step::kValues) {
        Table().values.clear();
      }
      return std::span<std::byte>();
    }
    // What has room already, or as much again as has come.
    const uint64_t room = std::max<uint64_t>({kRowsAtOnce * width, have, list->capacity() - have});
    list->resize(have + std::min(room, count * width - have));
    return std::as_writable_bytes(std::span(*list).subspan(have));
  }
  RowGradients& Table() { return rows[node_][table_]; }
  uint64_t Count() const { return counts[node_ * dimensions.size() + table_]; }

  Status Prepare() {
    if (header.world != expected.world || header.step != expected.step ||
        header.phase != expected.phase || header.lanes != expected.lanes ||
        header.tables != expected.tables || header.notes > header.lanes ||
        header.nodes > header.lanes || (expected.phase == kGather && header.nodes != 1)) {
      return Unavailable(fmt::format("a worker is at step {} of world {}, this one at {} of {}",
                                     header.step, header.world, expected.step, expected.world));
    }
    notes.resize(header.notes);
    begins.resize(header.nodes);
    counts.resize(header.nodes * dimensions.size());
    dense.resize(header.nodes);
    rows.resize(header.nodes);
    for (std::vector<RowGradients>& node : rows) {
      node.resize(dimensions.size());
    }
    return Status();
  }

  Step step_ = Step::kHeader;
  size_t node_ = 0;  // of what comes next
  size_t table_ = 0;
};

AllReduce::AllReduce(Mesh& mesh, size_t dense_size, std::vector<uint32_t> dimensions)
    : mesh_(mesh),
      dense_size_(dense_size),
      dimensions_(std::move(dimensions)),
      outbound_(mesh.size()) {
  for (size_t rank = 0; rank < mesh.size(); ++rank) {
    inbound_.push_back(std::make_unique<Inbound>());
    inbound_.back()->dimensions = dimensions_;
  }
}

AllReduce::~AllReduce() = default;

std::pair<size_t, size_t> AllReduce::Slice(size_t rank) const {
  const auto border = [this](size_t part) {
    const size_t at = dense_size_ * part / mesh_.size();
    return part == mesh_.size() ? dense_size_ : at / kAlignment * kAlignment;
  };
  return {border(rank), border(rank + 1)};
}

Status AllReduce::Run(int64_t step, uint32_t lanes, std::vector<Sums::Node>* mine,
                      std::span<const LaneNote> notes, bool reconvene, StepSum* sum) {
  std::erase_if(*mine, [](const Sums::Node& node) { return !node.sum.has_value(); });
  sum->reconvene = reconvene;
  RETURN_IF_ERROR(Scatter(step, lanes, mine, notes, reconvene));
  RETURN_IF_ERROR(Collect(lanes, notes, sum));
  if (std::none_of(sum->lanes.begin(), sum->lanes.end(),
                   [](const LaneNote& note) { return note.gradient != 0; })) {
    return Status();
  }
  RETURN_IF_ERROR(Combine(lanes, mine, sum));
  return Gather(step, sum);
}

// Rows go to the member that their id hashes to.
void AllReduce::SplitRows(const std::vector<Sums::Node>& mine) {
  const uint64_t members = mesh_.size();
  for (std::vector<std::vector<RowGradients>>& nodes : outbound_) {
    nodes.resize(mine.size());
    for (std::vector<RowGradients>& tables : nodes) {
      tables.resize(dimensions_.size());
      for (RowGradients& table : tables) {
        table.ids.clear();
        table.values.clear();
      }
    }
  }
  for (size_t node = 0; node < mine.size(); ++node) {
    for (size_t t = 0; t < dimensions_.size(); ++t) {
      const RowGradients& rows = mine[node].sum->tables[t];
      for (size_t i = 0; i < rows.ids.size(); ++i) {
        const auto id = static_cast<uint64_t>(rows.ids[i]);
        const uint64_t owner = members == 1 ? 0 : MixSeeds(t, id) % members;
        RowGradients& to = outbound_[owner][node][t];
        const float* from = rows.values.data() + i * dimensions_[t];
        to.ids.push_back(rows.ids[i]);
        to.values.insert(to.values.end(), from, from + dimensions_[t]);
      }
    }
  }
}

Status AllReduce::Scatter(int64_t step, uint32_t lanes, std::vector<Sums::Node>* mine,
                          std::span<const LaneNote> notes, bool reconvene) {
  SplitRows(*mine);
  const Header header{mesh_.world(),
                      step,
                      kScatter,
                      lanes,
                      static_cast<uint32_t>(notes.size()),
                      static_cast<uint32_t>(mine->size()),
                      reconvene ? 1U : 0U,
                      static_cast<uint32_t>(dimensions_.size())};
  std::vector<uint32_t> begins;
  for (const Sums::Node& node : *mine) {
    begins.push_back(node.begin);
  }
  const auto [own_begin, own_end] = Slice(mesh_.rank());
  std::vector<std::vector<uint64_t>> counts(mesh_.size());
  std::vector<Mesh::Traffic> traffic(mesh_.size());
  for (size_t peer = 0; peer < mesh_.size(); ++peer) {
    if (peer == mesh_.rank()) {
      continue;
    }
    const auto [begin, end] = Slice(peer);
    std::vector<std::span<const std::byte>>& out = traffic[peer].out;
    for (const std::vector<RowGradients>& tables : outbound_[peer]) {
      for (const RowGradients& table : tables) {
        counts[peer].push_back(table.ids.size());
      }
    }
    out = {std::as_bytes(std::span(&header, 1)), std::as_bytes(notes), Bytes(begins),
           Bytes(counts[peer])};
    for (const Sums::Node& node : *mine) {
      out.push_back(std::as_bytes(std::span(node.sum->dense).subspan(begin, end - begin)));
    }
    for (const std::vector<RowGradients>& tables : outbound_[peer]) {
      for (const RowGradients& table : tables) {
        out.push_back(Bytes(table.ids));
        out.push_back(Bytes(table.values));
      }
    }
    Inbound& in = *inbound_[peer];
    in.Start(header, own_end - own_begin, {});
    traffic[peer].next = [&in] { return in.Next(); };
  }
  return mesh_.Exchange(&traffic);
}

// The notes of all members; they must be about each lane once.
Status AllReduce::Collect(uint32_t lanes, std::span<const LaneNote> notes, StepSum* sum) const {
  sum->lanes.assign(lanes, LaneNote());
  std::vector<std::optional<double>> weights(lanes);
  std::vector<bool> seen(lanes, false);
  uint32_t known = 0;
  bool fits = true;
  const auto take = [&](std::span<const LaneNote> some) {
    for (const LaneNote& note : some) {
      if (note.lane >= lanes || seen[note.lane] || note.rows < 0 || note.rows_read < 0) {
        fits = false;
        continue;
      }
      ++known;
      seen[note.lane] = true;
      sum->lanes[note.lane] = note;
      if (note.gradient != 0) {
        weights[note.lane] = note.weight;
      }
    }
  };
  take(notes);
  for (size_t peer = 0; peer < mesh_.size(); ++peer) {
    if (peer != mesh_.rank()) {
      take(inbound_[peer]->notes);
      sum->reconvene = sum->reconvene || inbound_[peer]->header.reconvene != 0;
    }
  }
  if (!fits || known != lanes) {
    return Unavailable(fmt::format("a step has notes of {} of {} lanes{}", known, lanes,
                                   fits ? "" : ", and others that do not fit"));
  }
  AddAlongTree(std::span(weights), [](double* left, double right) { *left += right; });
  sum->weight = weights[0].value_or(0);
  return Status();
}

Status AllReduce::Combine(uint32_t lanes, std::vector<Sums::Node>* mine, StepSum* sum) {
  const auto [begin, end] = Slice(mesh_.rank());
  std::vector<std::optional<Part>> parts(lanes);
  for (size_t node = 0; node < mine->size(); ++node) {
    parts[(*mine)[node].begin] =
        Part{std::span((*mine)[node].sum->dense).subspan(begin, end - begin),
             &outbound_[mesh_.rank()][node]};
  }
  for (size_t peer = 0; peer < mesh_.size(); ++peer) {
    Inbound& in = *inbound_[peer];
    for (size_t node = 0; peer != mesh_.rank() && node < in.begins.size(); ++node) {
      if (in.begins[node] >= lanes || parts[in.begins[node]].has_value()) {
        return Unavailable("two workers computed the same lane");
      }
      parts[in.begins[node]] = Part{in.dense[node], &in.rows[node]};
    }
  }
  const float factor = sum->weight > 0 ? static_cast<float>(1.0 / sum->weight) : 1.0F;
  sum->gradient.dense.resize(dense_size_);
  std::vector<std::span<float>> dense(lanes);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    dense[lane] = parts[lane].has_value() ? parts[lane]->dense : std::span<float>();
  }
  AddSlices(dense, factor, std::span(sum->gradient.dense).subspan(begin, end - begin));
  AddAlongTree(std::span(parts), [this](Part* left, const Part& right) {
    for (size_t t = 0; t < dimensions_.size(); ++t) {
      MergeRows(&(*left->tables)[t], (*right.tables)[t], dimensions_[t]);
    }
  });
  if (!parts[0].has_value()) {
    return Unavailable("a step has weights and no gradients");
  }
  sum->gradient.tables = *parts[0]->tables;
  for (RowGradients& table : sum->gradient.tables) {
    for (float& value : table.values) {
      value *= factor;
    }
  }
  return Status();
}

Status AllReduce::Gather(int64_t step, StepSum* sum) {
  const auto [own_begin, own_end] = Slice(mesh_.rank());
  const Header header{
      mesh_.world(), step, kGather, 1, 0, 1, 0, static_cast<uint32_t>(dimensions_.size())};
  const uint32_t node = 0;
  std::vector<uint64_t> counts;
  for (const RowGradients& table : sum->gradient.tables) {
    counts.push_back(table.ids.size());
  }
  std::vector<Mesh::Traffic> traffic(mesh_.size());
  const std::span<float> dense = sum->gradient.dense;
  for (size_t peer = 0; peer < mesh_.size(); ++peer) {
    if (peer == mesh_.rank()) {
      continue;
    }
    std::vector<std::span<const std::byte>>& out = traffic[peer].out;
    out = {std::as_bytes(std::span(&header, 1)), std::as_bytes(std::span(&node, 1)), Bytes(counts),
           std::as_bytes(dense.subspan(own_begin, own_end - own_begin))};
    for (const RowGradients& table : sum->gradient.tables) {
      out.push_back(Bytes(table.ids));
      out.push_back(Bytes(table.values));
    }
    const auto [begin, end] = Slice(peer);
    Inbound& in = *inbound_[peer];
    in.Start(header, end - begin, dense.subspan(begin, end - begin));
    traffic[peer].next = [&in] { return in.Next(); };
  }
  RETURN_IF_ERROR(mesh_.Exchange(&traffic));
  // A row has one owner: their rows follow each other, in the order of the ranks.
  std::vector<RowGradients> own(dimensions_.size());
  std::swap(own, sum->gradient.tables);
  for (size_t rank = 0; rank < mesh_.size(); ++rank) {
    for (size_t t = 0; t < dimensions_.size(); ++t) {
      const RowGradients& rows = rank == mesh_.rank() ? own[t] : inbound_[rank]->rows[0][t];
      RowGradients& all = sum->gradient.tables[t];
      all.ids.insert(all.ids.end(), rows.ids.begin(), rows.ids.end());
      all.values.insert(all.values.end(), rows.values.begin(), rows.values.end());
    }
  }
  return Status();
}

}  // namespace sluice::elastic
