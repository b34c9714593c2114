#include "elastic/collective/all_reduce_inbound_internal.h"

#include <fmt/core.h>

#include <algorithm>

#include "elastic/queue/shard_order.h"

namespace sluice::elastic {
namespace {

// Slices begin at multiples of a vector register and a cache line.
constexpr size_t kAlignment = 16;
constexpr size_t kBlock = 1024;  // 4 KiB of each of many lanes

template <typename T>
std::span<const std::byte> Bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
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

// One block of all slices at a time stays in the processor's cache up the whole tree, so that each
// number is read from memory once.
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

// A node's dense numbers, in its own memory or received from a peer.
struct AllReduce::Part {
  std::span<float> dense;
  std::vector<RowGradients>* tables = nullptr;
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

std::pair<size_t, size_t> AllReduce::Slice(Rank rank) const {
  if (AddsEverything()) {
    return {0, dense_size_};
  }
  const auto border = [this](size_t part) {
    const size_t at = dense_size_ * part / mesh_.size();
    return part == mesh_.size() ? dense_size_ : at / kAlignment * kAlignment;
  };
  return {border(rank.index()), border(rank.index() + 1)};
}

Status AllReduce::Run(int64_t step, uint32_t lanes, std::vector<Sums::Node>* mine,
                      std::span<const LaneNote> notes, bool reconvene, StepSum* sum,
                      const std::function<void()>& meanwhile) {
  std::erase_if(*mine, [](const Sums::Node& node) { return !node.sum.has_value(); });
  sum->reconvene = reconvene;
  RETURN_IF_ERROR(Scatter(step, lanes, mine, notes, reconvene, meanwhile));
  RETURN_IF_ERROR(Collect(lanes, notes, sum));
  if (std::none_of(sum->lanes.begin(), sum->lanes.end(),
                   [](const LaneNote& note) { return note.gradient != 0; })) {
    return Status();
  }
  RETURN_IF_ERROR(Combine(lanes, mine, sum));
  return AddsEverything() ? Status() : Gather(step, sum);
}

// Each row goes to the member to which its id hashes, or to both members.
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
      if (AddsEverything()) {
        outbound_[0][node][t] = rows;
        outbound_[1][node][t] = rows;
        continue;
      }
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
                          std::span<const LaneNote> notes, bool reconvene,
                          const std::function<void()>& meanwhile) {
  SplitRows(*mine);
  const Header header{mesh_.world().value(),
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
    if (peer == mesh_.rank().index()) {
      continue;
    }
    const auto [begin, end] = Slice(Rank::At(peer));
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
  return mesh_.Exchange(&traffic, meanwhile);
}

// The notes of all members; each lane must occur once.
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
    if (peer != mesh_.rank().index()) {
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
             &outbound_[mesh_.rank().index()][node]};
  }
  for (size_t peer = 0; peer < mesh_.size(); ++peer) {
    Inbound& in = *inbound_[peer];
    for (size_t node = 0; peer != mesh_.rank().index() && node < in.begins.size(); ++node) {
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
      mesh_.world().value(), step, kGather, 1, 0, 1, 0, static_cast<uint32_t>(dimensions_.size())};
  const uint32_t node = 0;
  std::vector<uint64_t> counts;
  for (const RowGradients& table : sum->gradient.tables) {
    counts.push_back(table.ids.size());
  }
  std::vector<Mesh::Traffic> traffic(mesh_.size());
  const std::span<float> dense = sum->gradient.dense;
  for (size_t peer = 0; peer < mesh_.size(); ++peer) {
    if (peer == mesh_.rank().index()) {
      continue;
    }
    std::vector<std::span<const std::byte>>& out = traffic[peer].out;
    out = {std::as_bytes(std::span(&header, 1)), std::as_bytes(std::span(&node, 1)), Bytes(counts),
           std::as_bytes(dense.subspan(own_begin, own_end - own_begin))};
    for (const RowGradients& table : sum->gradient.tables) {
      out.push_back(Bytes(table.ids));
      out.push_back(Bytes(table.values));
    }
    const auto [begin, end] = Slice(Rank::At(peer));
    Inbound& in = *inbound_[peer];
    in.Start(header, end - begin, dense.subspan(begin, end - begin));
    traffic[peer].next = [&in] { return in.Next(); };
  }
  RETURN_IF_ERROR(mesh_.Exchange(&traffic));
  // A row has one owner: the owners' rows are concatenated in the order of the ranks.
  std::vector<RowGradients> own(dimensions_.size());
  std::swap(own, sum->gradient.tables);
  for (size_t rank = 0; rank < mesh_.size(); ++rank) {
    for (size_t t = 0; t < dimensions_.size(); ++t) {
      const RowGradients& rows = rank == mesh_.rank().index() ? own[t] : inbound_[rank]->rows[0][t];
      RowGradients& all = sum->gradient.tables[t];
      all.ids.insert(all.ids.end(), rows.ids.begin(), rows.ids.end());
      all.values.insert(all.values.end(), rows.values.begin(), rows.values.end());
    }
  }
  return Status();
}

}  // namespace sluice::elastic
