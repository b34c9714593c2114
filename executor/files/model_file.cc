#include "executor/files/model_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "catalog/sha256.h"
#include "executor/files/model_file.pb.h"

namespace sluice::executor {
namespace {

constexpr std::string_view kFamily = "sluice model ";
constexpr std::string_view kMagic = "sluice model 1\n";
constexpr size_t kLengthBytes = sizeof(uint64_t);  // of the header, little-endian
constexpr size_t kChecksumBytes = 64;              // SHA-256 in hex
// A model's plan has a vocabulary per column at most.
constexpr uint64_t kMostHeaderBytes = uint64_t{1} << 30;
constexpr size_t kMostNameBytes = 200;
constexpr int kMostMetrics = 1'000;

std::string LengthBytes(uint64_t length) {
  std::string bytes;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    bytes += static_cast<char>((length >> (8 * i)) & 0xffU);
  }
  return bytes;
}

uint64_t ReadLength(std::string_view bytes) {
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return length;
}

std::string ChecksumOf(std::string_view bytes) {
  catalog::Sha256 sha256;
  sha256.Add(bytes);
  return sha256.Hex();
}

Status Damaged(std::string why) {
  return InvalidArgument("the file is damaged")
      .Detail(std::move(why))
      .Hint("copy it again, or EXPORT the model again");
}

bool HasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

Result<catalog::ModelVersion> VersionOf(const ModelFileHeader& header) {
  if (header.name().empty() || header.name().size() > kMostNameBytes || HasControl(header.name())) {
    return Damaged("its model has no name that a model can have");
  }
  bool text =
      header.statement().find('\0') == std::string::npos && header.metrics_size() <= kMostMetrics;
  catalog::ModelVersion version;
  for (const ModelFileHeader::Metric& metric : header.metrics()) {
    text = text && !HasControl(metric.name());
    version.metrics.emplace_back(metric.name(), metric.value());
  }
  if (!text || header.version() < 0 || header.rows() < 0) {
    return Damaged("its header is none of a model");
  }
  version.name = header.name();
  version.version = header.version();
  version.statement = header.statement();
  version.plan = header.plan();
  version.rows = header.rows();
  version.lineage = header.lineage();
  return version;
}

}  // namespace

std::string WriteModelFile(const catalog::ModelVersion& version, std::string_view weights) {
  ModelFileHeader header;
  header.set_name(version.name);
  header.set_version(version.version);
  header.set_statement(version.statement);
  header.set_plan(version.plan);
  for (const auto& [name, value] : version.metrics) {
    ModelFileHeader::Metric* metric = header.add_metrics();
    metric->set_name(name);
    metric->set_value(value);
  }
  header.set_rows(version.rows);
  header.set_lineage(version.lineage);
  header.set_weights_bytes(static_cast<int64_t>(weights.size()));
  const std::string head = header.SerializeAsString();
  std::string bytes;
  bytes.reserve(kMagic.size() + kLengthBytes + head.size() + weights.size() + kChecksumBytes);
  bytes += kMagic;
  bytes += LengthBytes(head.size());
  bytes += head;
  bytes += weights;
  return bytes + ChecksumOf(bytes);
}

Result<ModelFile> ReadModelFile(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) {
    return bytes.starts_with(kFamily)
               ? InvalidArgument("the file is of a format that this version of Sluice cannot read")
                     .Hint("import it with the version that exported it, or a later one")
               : InvalidArgument("the file is not one that EXPORT MODEL wrote");
  }
  if (bytes.size() < kMagic.size() + kLengthBytes + kChecksumBytes) {
    return Damaged(fmt::format("it ends after {} bytes", bytes.size()));
  }
  const std::string_view content = bytes.substr(0, bytes.size() - kChecksumBytes);
  const std::string checksum = ChecksumOf(content);
  if (checksum != bytes.substr(content.size())) {
    return Damaged(
        fmt::format("SHA-256 of its content is {}, which is not what its end says", checksum));
  }
  std::string_view rest = content.substr(kMagic.size());
  const uint64_t length = ReadLength(rest);
  rest.remove_prefix(kLengthBytes);
  ModelFileHeader header;
  if (length > rest.size() || length > kMostHeaderBytes ||
      !header.ParseFromArray(rest.data(), static_cast<int>(length))) {
    return Damaged("its header cannot be read");
  }
  rest.remove_prefix(static_cast<size_t>(length));
  if (header.weights_bytes() < 0 || static_cast<uint64_t>(header.weights_bytes()) != rest.size()) {
    return Damaged(fmt::format("it holds weights of {} bytes, and its header says {}", rest.size(),
                               header.weights_bytes()));
  }
  ModelFile file;
  ASSIGN_OR_RETURN(file.version, VersionOf(header));
  file.weights = rest;
  return file;
}

}  // namespace sluice::executor
