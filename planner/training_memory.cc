#include "planner/training_memory.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/letter_case.h"
#include "catalog/data_source.h"
#include "models/model.h"
#include "models/model.pb.h"
#include "models/networks/optimizer.h"
#include "models/trees/gradient_boosting.h"
#include "planner/plan.pb.h"

namespace sluice::planner {
namespace {

constexpr double kMebibyte = 1 << 20;
// The program with its libraries, and what every process of a job needs: threads, connections.
constexpr double kProgramBytes = 23 * kMebibyte;
// libxgboost with OpenMP's runtime, in processes that use it.
constexpr double kTreeLibraryBytes = 8 * kMebibyte;
// The database's buffers and the rows between it and the transform; a server's messages.
constexpr double kStreamBytes = 5 * kMebibyte;
constexpr double kMessageBytes = 2 * kMebibyte;
// A feature plan as received, as parsed, and as the transform holds it.
constexpr double kCopiesOfPlan = 6;
// Growing vectors reserve room in advance, and leave behind blocks that were too small.
constexpr double kGrowth = 1.35;
// A row of a table: its id, its step count, its index entries, and its share of the block's unused
// room.
constexpr double kBytesPerRow = 32;
constexpr double kRowGrowth = 1.1;
// Copies of dense values. A worker: as pulled, the gradient, and the message being built, sent,
// received and read (in synchronous mode while waiting for the others). A server: what each worker
// pushes or pulls at a time.
constexpr double kDenseCopiesOfWorker = 9;
constexpr double kDenseCopiesInLockstep = 7;
constexpr double kDenseCopiesPerPush = 5;
// A synchronous step: the lanes' gradients and their messages, the sums, the previous values.
constexpr double kDenseCopiesPerLane = 2;
constexpr double kDenseCopiesOfStep = 9;
// All-reduce: the lanes of the next round, if they are read in advance; the batches of all of a
// worker's lanes, their ids and the positions of these.
constexpr double kMostRoundAhead = 16 * kMebibyte;
constexpr double kCopiesOfBatch = 4;
// All-reduce: gradients and sums of the lanes, messages of the mesh; and the whole model in the
// process that hands it over at the end.
constexpr double kDenseCopiesOfMesh = 5.5;
constexpr double kCopiesHandedOver = 2.9;
constexpr double kCopiesInProcess = 2;
// Weights, direction, gradient and diagonal, as doubles, in memory and in messages.
constexpr double kCopiesInPass = 16;
// Trees that are grown here: of a row its label, weight and places in the tree, and for each output
// a margin and its derivatives; of a column what counts its numbers; the sums of a bin.
constexpr double kGrownBytesPerRow = 16;
constexpr double kGrownBytesPerOutput = 12;
constexpr double kCountBytesPerValue = 43;
constexpr double kMostCountBytes = 0.25 * kMebibyte;
constexpr double kSumBytesPerBin = 16;
constexpr double kMostSumBytes = 512 * kMebibyte;
// libxgboost per row: where it begins and its label; positions in the tree, twice; and for each
// output a gradient and the predictions, as kept and as evaluated.
constexpr double kTreeBytesPerRow = 36;
constexpr double kTreeBytesPerOutput = 16;
// Numbers with their columns, by row and by column, for methods that do not use bins.
constexpr double kNumberBytesPerValue = 16;
// The bins, by row (by column they take a byte, or two beyond 256 of them), if numbers are missing.
constexpr double kBinBytesWithMissing = 4;
constexpr int64_t kMostSmallBins = 256;
// The sketch of a column, from which its bins are found.
constexpr double kSketchBytesPerValue = 64;
constexpr double kMostSketchBytes = 2.6 * kMebibyte;
// A piece of rows as read, as passed to libxgboost, and as packed (models/trees).
constexpr double kCopiesOfPiece = 2;
constexpr double kRowsPerPiece = 1 << 16;
constexpr double kNumbersPerPiece = 1 << 21;
// Limits for rows kept for later epochs (elastic/worker/shard_rows.cc), and for validation rows.
constexpr double kMaxKept = 256 * kMebibyte;
constexpr double kMaxKeptValidation = 64 * kMebibyte;

struct Parameters {
  double dense = 0;      // bytes of the dense values
  double rows = 0;       // bytes of the tables' rows
  double optimizer = 0;  // bytes kept in addition to both
};

double SlotsOf(const models::OptimizerSpec& spec) {
  const auto optimizer = models::Optimizer::Make(spec);
  return optimizer.ok() ? static_cast<double>((*optimizer)->slot_count()) : 0;
}

// The number of a feature's possible ids that occur in the data.
double IdsOf(const models::FeaturePlan& plan, const models::Feature& feature, double buckets,
             const Schema& columns, const catalog::SelectStatistics& statistics) {
  if (feature.format().kind() != models::TensorFormat::NONE) {
    return buckets;  // each cell holds several
  }
  double distinct = 1;
  for (const uint32_t input : feature.inputs()) {
    const std::optional<size_t> column = columns.Find(plan.inputs(static_cast<int>(input)).name());
    if (!column.has_value() || *column >= statistics.columns.size()) {
      return buckets;
    }
    distinct *= std::max(1.0, statistics.columns[*column].distinct);
  }
  distinct = std::min(distinct, static_cast<double>(std::max<int64_t>(1, statistics.rows)));
  const models::Categorizer::Kind kind = feature.categorizer().kind();
  if (kind == models::Categorizer::HASH || kind == models::Categorizer::CROSS) {
    return buckets * -std::expm1(-distinct / buckets);  // several values may share a bucket
  }
  return std::min(buckets, distinct + 2);
}

// The share of possible table rows that the data touches, for the part of the network with this
// dimension.
double TouchedShare(const plan::TrainPlan& plan, const models::Network& network, bool wide,
                    uint32_t dimension, const Schema& columns,
                    const catalog::SelectStatistics& statistics) {
  const models::FeaturePlan& features = plan.model().features();
  double all = 0, touched = 0;
  for (const models::SlotColumn& slot : network.transform().slots()) {
    const bool here =
        wide ? slot.in_wide : slot.in_deep && (!slot.embedding || slot.dimension == dimension);
    if (here && slot.buckets > 0) {
      all += slot.buckets;
      touched += IdsOf(features, features.features(static_cast<int>(slot.feature)), slot.buckets,
                       columns, statistics);
    }
  }
  return all > 0 ? touched / all : 1;
}

// Optimizer slots per number of a tensor.
double SlotsOf(const models::DenseTensor& tensor, double wide_slots, double deep_slots) {
  switch (tensor.group) {
    case models::DenseTensor::Group::kWide:
      return wide_slots;
    case models::DenseTensor::Group::kDeep:
      return deep_slots;
    default:  // none: they are not trained by gradient descent
      return 0;
  }
}

Parameters ParametersOf(const plan::TrainPlan& plan, const models::Network& network,
                        const Schema& columns, const catalog::SelectStatistics& statistics) {
  const double wide_slots = SlotsOf(plan.model().wide_optimizer());
  const double deep_slots = SlotsOf(plan.model().deep_optimizer());
  Parameters parameters;
  for (const models::DenseTensor& tensor : network.dense()) {
    const double bytes = static_cast<double>(tensor.size()) * sizeof(float);
    parameters.dense += bytes;
    parameters.optimizer += bytes * SlotsOf(tensor, wide_slots, deep_slots);
  }
  for (const models::EmbeddingTable& table : network.tables()) {
    const double rows =
        static_cast<double>(table.rows) *
        TouchedShare(plan, network, table.wide, table.dimension, columns, statistics);
    const double bytes = rows * table.dimension * sizeof(float) * kRowGrowth;
    parameters.rows += bytes;
    parameters.optimizer += bytes * (table.wide ? wide_slots : deep_slots) + rows * kBytesPerRow;
  }
  return parameters;
}

double BytesPerRow(const models::Network& network) {
  const models::FeatureTransform& transform = network.transform();
  return static_cast<double>(transform.dense_width() + transform.slots().size() +
                             transform.label_width()) *
         sizeof(float);
}

// What is kept on disks if memory has no room. An optimum beyond it is found in one pass.
int64_t SpilledBytes(const plan::TrainPlan& plan, const models::Network& network, bool no_room) {
  const bool again = plan.epochs() > 1 && !plan.optimum();
  return no_room && again && plan.disk_cache() != plan::TrainPlan::NO_CACHE
             ? WholeBytes(BytesPerRow(network) * static_cast<double>(plan.estimated_rows()))
             : 0;
}

// The memory for rows in a process that trains.
TrainingMemory RowsOf(const plan::TrainPlan& plan, const models::Network& network) {
  const double workers = std::max<uint32_t>(1, plan.strategy().workers());
  const double per_row = BytesPerRow(network) * kGrowth;
  const auto rows = static_cast<double>(plan.estimated_rows());
  const double shard = std::min(rows, static_cast<double>(plan.rows_per_shard()));
  const bool lockstep = plan.strategy().mode() == plan::Strategy::SYNCHRONOUS;
  const double lanes = lockstep ? std::max<uint32_t>(1, plan.strategy().micro_batches()) : 1;
  const double batch =
      static_cast<double>(plan.batch_size()) / lanes * static_cast<double>(network.bytes_per_row());
  double kept = 0;
  if (plan.epochs() > 1 && BytesPerRow(network) * rows <= kMaxKept) {
    // Shards are dealt anew in each epoch, so a worker sees more of them over time.
    kept = per_row * rows * (1 - std::pow(1 - 1 / workers, plan.epochs()));
  } else if (plan.split().kind() != plan::Split::NONE) {
    kept = std::min(kMaxKeptValidation, per_row * rows * plan.split().fraction() / workers);
  }
  TrainingMemory memory;
  memory.spilled = SpilledBytes(plan, network, BytesPerRow(network) * rows > kMaxKept);
  // The current shard and the next one, or a worker's share of a round's lanes; half of the scratch
  // is for rare uses (dropout).
  const double held = std::max(2.0, std::ceil(lanes / workers)) * shard * per_row;
  double ahead = 0;
  if (plan.strategy().kind() == plan::Strategy::ALL_REDUCE) {
    const double share = static_cast<double>(plan.batch_size()) / workers;
    ahead = std::min(held, kMostRoundAhead) + kCopiesOfBatch * share * BytesPerRow(network);
  }
  memory.worker = WholeBytes(kStreamBytes + held + ahead + batch / 2 + kept);
  memory.kept = WholeBytes(kept);
  return memory;
}

// What boosted trees hold of their columns while these are binned.
struct TreeColumns {
  double packed = 0;  // bytes a row
  double sketches = 0;
  double counts = 0;
  double bins = 0;
  double width = 0;
  bool missing = false;  // some numbers
};

// The numbers in a cell: a vector's, or one.
double WidthOf(const models::Feature& feature) {
  double width = 1;
  if (feature.kind() != models::Feature::CATEGORY) {
    for (const int64_t size : feature.format().shape()) {
      width *= static_cast<double>(size);
    }
  }
  return width;
}

// The statistics of the column that a number is read from; null: of none, or of several.
const catalog::ColumnStatistics* StatisticsOf(const models::FeaturePlan& plan,
                                              const models::Feature& feature, const Schema& columns,
                                              const catalog::SelectStatistics& statistics) {
  if (feature.inputs_size() != 1) {
    return nullptr;
  }
  const auto input = static_cast<int>(feature.inputs(0));
  const std::optional<size_t> column = columns.Find(plan.inputs(input).name());
  return column.has_value() && *column < statistics.columns.size() ? &statistics.columns[*column]
                                                                   : nullptr;
}

void AddColumn(const models::Feature& feature, const catalog::ColumnStatistics* statistics,
               double rows, double most_bins, TreeColumns* columns) {
  // Of as many rows as are packed together, by the number of distinct values among them.
  constexpr double kOneByte = 256, kTwoBytes = 16'384;
  double distinct = rows;
  if (feature.kind() == models::Feature::CATEGORY) {
    distinct = std::min(rows, static_cast<double>(feature.categorizer().buckets()));
    columns->missing = columns->missing || feature.format().kind() != models::TensorFormat::NONE;
  } else if (statistics != nullptr) {
    distinct = std::min(rows, statistics->distinct);
    columns->missing = columns->missing || statistics->null_fraction > 0;
  }
  const double width = WidthOf(feature);
  columns->packed += width * (distinct <= kOneByte ? 1 : distinct <= kTwoBytes ? 2 : 4);
  columns->sketches += width * std::min(kMostSketchBytes, kSketchBytesPerValue * distinct);
  columns->counts += width * std::min(kMostCountBytes, kCountBytesPerValue * distinct);
  columns->bins += width * (std::min(most_bins, distinct) + 1);
  columns->width += width;
}

const models::Attribute* FindAttribute(const models::ModelSpec& model, std::string_view name) {
  for (const models::Attribute& attribute : model.attributes()) {
    if (attribute.name() == name) {
      return &attribute;
    }
  }
  return nullptr;
}

// Nodes of a tree whose histograms are held together: those of the last level that is split, and
// what threads add up of half of them.
double NodesAtOnce(const models::ModelSpec& model) {
  constexpr double kDefaultDepth = 6, kDeepest = 12;
  const models::Attribute* depth = FindAttribute(model, "max_depth");
  const double levels = depth == nullptr ? kDefaultDepth : static_cast<double>(depth->integer());
  return 2 * std::exp2((levels == 0 ? kDeepest : std::min(levels, kDeepest)) - 1);
}

bool LearnsFromNumbers(const models::ModelSpec& model) {
  const models::Attribute* method = FindAttribute(model, "tree_method");
  return LowerAscii(model.type()).ends_with("gblinear") ||
         (method != nullptr && (method->text() == "exact" || method->text() == "approx"));
}

}  // namespace

int64_t WholeBytes(double bytes) {
  constexpr double kMax = 0x1p62;
  return static_cast<int64_t>(std::min(bytes, kMax));
}

TrainingMemory EstimateNetworkMemory(const plan::TrainPlan& plan, const models::Network& network,
                                     const Schema& columns,
                                     const catalog::SelectStatistics& statistics) {
  const plan::Strategy& strategy = plan.strategy();
  const Parameters parameters = ParametersOf(plan, network, columns, statistics);
  const double values = parameters.dense + parameters.rows;
  const double process =
      kProgramBytes + kCopiesOfPlan * static_cast<double>(plan.model().ByteSizeLong());
  double all = values + parameters.optimizer;
  if (plan.early_stopping().patience() > 0) {
    all += values;  // the best ones so far
  }
  TrainingMemory memory = RowsOf(plan, network);
  double worker = static_cast<double>(memory.worker) + process;
  switch (strategy.kind()) {
    case plan::Strategy::PARAMETER_SERVER: {
      if (plan.optimum()) {
        worker += kCopiesInPass * values;
        break;
      }
      const double servers = std::max<uint32_t>(1, strategy.parameter_servers());
      const double share = std::min(1.0, (1.0 + strategy.replicas()) / servers);
      const bool lanes = strategy.mode() == plan::Strategy::SYNCHRONOUS;
      worker += (lanes ? kDenseCopiesInLockstep : kDenseCopiesOfWorker) * parameters.dense;
      const double copies =
          lanes ? kDenseCopiesPerLane * strategy.micro_batches() + kDenseCopiesOfStep
                : kDenseCopiesPerPush * strategy.workers();
      memory.server =
          WholeBytes(process + kMessageBytes + share * (all + copies * parameters.dense));
      break;
    }
    case plan::Strategy::ALL_REDUCE:
      worker += all + kDenseCopiesOfMesh * parameters.dense + kCopiesHandedOver * values;
      break;
    default:
      worker += all + kCopiesInProcess * (parameters.dense + values);
      break;
  }
  memory.worker = WholeBytes(worker);
  if (strategy.kind() != plan::Strategy::LOCAL && strategy.memory_bytes() > 0 &&
      memory.worker > strategy.memory_bytes()) {
    memory.worker -= memory.kept;
    memory.kept = 0;
    memory.spilled = SpilledBytes(plan, network, true);
  }
  return memory;
}

double MostForestBytes(const plan::TrainPlan& plan) {
  constexpr double kBytesPerNode = 100;  // grown, and as it is stored
  const auto rows = static_cast<double>(plan.estimated_rows());
  return kBytesPerNode * models::GradientBoosting::MostNodes(plan.model(), rows);
}

TrainingMemory EstimateTreeMemory(const plan::TrainPlan& plan, const Schema& columns,
                                  const catalog::SelectStatistics& statistics) {
  const models::FeaturePlan& features = plan.model().features();
  const auto rows = static_cast<double>(std::max<int64_t>(0, statistics.rows));
  const models::Attribute* bins = FindAttribute(plan.model(), "max_bin");
  const double most_bins =
      bins != nullptr ? static_cast<double>(bins->integer()) : static_cast<double>(kMostSmallBins);
  TreeColumns all;
  for (const models::Feature& feature : features.features()) {
    AddColumn(feature, StatisticsOf(features, feature, columns, statistics), rows, most_bins, &all);
  }
  const double width = all.width;
  const int classes = features.label().classes_size();
  const double outputs = classes > 2 ? classes : 1;
  const double bin = most_bins > static_cast<double>(kMostSmallBins) ? 2 : 1;
  double training = kTreeBytesPerRow + kTreeBytesPerOutput * outputs;
  double building = rows * all.packed;
  double sums = 0;
  if (models::GradientBoosting::GrowsHere(plan.model())) {
    training = kGrownBytesPerRow + kGrownBytesPerOutput * outputs + bin * width;
    building += all.counts;
    sums = std::min(kMostSumBytes, all.bins * kSumBytesPerBin * NodesAtOnce(plan.model()));
  } else if (LearnsFromNumbers(plan.model())) {
    training += kNumberBytesPerValue * width;
    building = 0;
  } else {
    training += ((all.missing ? kBinBytesWithMissing : bin) + bin) * width;
    building += all.sketches;
  }
  const double piece = std::min(kNumbersPerPiece, std::min(rows, kRowsPerPiece) * width);
  TrainingMemory memory;
  if (plan.strategy().kind() != plan::Strategy::LOCAL) {  // each worker has an equal share
    const double share = rows / std::max<uint32_t>(1, plan.strategy().workers());
    const double kept = std::min(kMaxKept, share * width * sizeof(float));  // until they are binned
    memory.worker = WholeBytes(kProgramBytes + kTreeLibraryBytes + kStreamBytes +
                               kCopiesOfPiece * piece * sizeof(float) + all.counts + sums +
                               std::max(kept, share * training));
    return memory;
  }
  memory.worker = WholeBytes(kProgramBytes + kTreeLibraryBytes + kStreamBytes +
                             kCopiesOfPiece * piece * sizeof(float) +
                             std::max(building, rows * training + sums) + MostForestBytes(plan));
  return memory;
}

}  // namespace sluice::planner
