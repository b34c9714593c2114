#include "elastic/storage/checkpoint.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <span>
#include <thread>

#include "elastic/storage/checkpoint_file_internal.h"
#include "elastic/storage/crc32c.h"
#include "elastic/storage/durable_file.h"

namespace sluice::elastic {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kDraft = "draft-";
constexpr char kManifest[] = "manifest";
constexpr char kLock[] = "lock";
constexpr char kCommittingJob[] = "ending";
// A queue of a billion rows takes some megabytes.
constexpr size_t kMaxManifestBytes = size_t{1} << 30;
constexpr size_t kReadBytes = size_t{1} << 20;
constexpr std::chrono::milliseconds kLockWait{2'000}, kLockRetry{20};

Result<std::string> Encode(const CheckpointManifest& manifest) {
  CheckpointProto proto;
  proto.set_cut(manifest.cut);
  proto.set_model(manifest.model);
  proto.set_partitions(manifest.partitions);
  proto.set_synchronous(manifest.synchronous);
  proto.set_servers(manifest.servers);
  proto.set_queue_state(manifest.queue_state);
  proto.set_steps(manifest.steps);
  proto.set_epoch(manifest.epoch.value());
  proto.set_plan(manifest.plan);
  proto.set_data(manifest.data);
  for (const CheckpointManifest::File& file : manifest.files) {
    ToProto(file, proto.add_files());
  }
  const size_t size = proto.ByteSizeLong();
  if (size > kMaxManifestBytes) {
    return ResourceExhausted(
        fmt::format("the queue, plan and data of a checkpoint take {} bytes; {} are allowed", size,
                    kMaxManifestBytes));
  }
  std::string bytes = proto.SerializeAsString();
  const uint32_t crc = Crc32c(bytes);
  bytes.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  return bytes;
}

Result<CheckpointManifest> Decode(std::string_view bytes) {
  uint32_t crc = 0;
  CheckpointProto proto;
  if (bytes.size() < sizeof(crc)) {
    return Internal("its manifest is cut off");
  }
  std::memcpy(&crc, bytes.data() + bytes.size() - sizeof(crc), sizeof(crc));
  bytes.remove_suffix(sizeof(crc));
  if (bytes.size() > kMaxManifestBytes || Crc32c(bytes) != crc ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Internal("its manifest is damaged");
  }
  CheckpointManifest manifest{proto.cut(),
                              proto.model(),
                              proto.partitions(),
                              proto.synchronous(),
                              proto.servers(),
                              proto.queue_state(),
                              proto.steps(),
                              Epoch(proto.epoch()),
                              proto.plan(),
                              proto.data(),
                              {}};
  for (const CheckpointFileProto& file : proto.files()) {
    manifest.files.push_back(FromProto(file));
  }
  return manifest;
}

// Removes drafts of abandoned checkpoints. A process that still writes to one finds it gone.
void RemoveDrafts(const std::string& path) {
  std::error_code error;
  std::vector<fs::path> drafts;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.path().filename().string().starts_with(kDraft)) {
      drafts.push_back(entry.path());
    }
  }
  for (const fs::path& draft : drafts) {
    fs::remove_all(draft, error);
  }
}

Status ReadToTheEnd(ByteSource& source) {
  std::string bytes(std::min<uint64_t>(source.left(), kReadBytes), '\0');
  while (source.left() > 0) {
    RETURN_IF_ERROR(source.Read(bytes.data(), std::min<uint64_t>(source.left(), bytes.size())));
  }
  return Status();
}

// Reads every byte, so that a checkpoint reported as complete can be loaded.
Result<CheckpointManifest> ReadWhole(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(fmt::format("{}/{}", path, kManifest)));
  ASSIGN_OR_RETURN(CheckpointManifest manifest, Decode(bytes));
  std::set<uint32_t> partitions;
  for (const CheckpointManifest::File& file : manifest.files) {
    if (file.digest.empty() || file.draft != manifest.files[0].draft) {
      return Internal(fmt::format("its partition {} was not written for it", file.partition));
    }
    if (file.partition >= manifest.partitions || !partitions.insert(file.partition).second) {
      return Internal(fmt::format("its partition {} of {} is there twice", file.partition,
                                  manifest.partitions));
    }
    ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> partition,
                     CheckpointDirectory::OpenPartition(path, file));
    RETURN_IF_ERROR(ReadToTheEnd(*partition));
  }
  if (partitions.size() != manifest.partitions) {
    return Internal(
        fmt::format("it has {} of {} partitions", partitions.size(), manifest.partitions));
  }
  return manifest;
}

// One opener at a time; a process that was just killed gets a moment to disappear.
bool Lock(int file) {
  const auto until = std::chrono::steady_clock::now() + kLockWait;
  while (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= until) {
      return false;
    }
    std::this_thread::sleep_for(kLockRetry);
  }
  return true;
}

}  // namespace

void ToProto(const CheckpointManifest::File& file, CheckpointFileProto* proto) {
  proto->set_partition(file.partition);
  proto->set_name(file.name);
  proto->set_offset(file.offset);
  proto->set_bytes(file.bytes);
  proto->set_draft(file.draft);
  proto->set_digest(file.digest);
}

CheckpointManifest::File FromProto(const CheckpointFileProto& proto) {
  return {proto.partition(), proto.name(),  proto.offset(),
          proto.bytes(),     proto.draft(), proto.digest()};
}

// Shared by copies of a directory; ends with the last of them.
struct CheckpointDirectory::Opener {
  ~Opener() {
    if (lock >= 0) {
      close(lock);
    }
  }
  int lock = -1;
  uint64_t last = 0;  // the last cut that was begun: a draft's name is never reused
};

CheckpointDirectory::CheckpointDirectory(std::string path, uint32_t keep)
    : path_(std::move(path)), keep_(keep), opener_(std::make_shared<Opener>()) {}

Result<CheckpointDirectory> CheckpointDirectory::Open(const std::string& path, uint32_t keep) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    fs::create_directories(path, error);
    if (error) {
      return FailedPrecondition(
          fmt::format("cannot create the folder '{}': {}", path, error.message()));
    }
  } else if (!fs::is_directory(path, error)) {
    return FailedPrecondition(fmt::format("'{}' is not a folder", path));
  }
  CheckpointDirectory directory(path, keep);
  // Checked first: nothing is created or removed in a folder that belongs to something else.
  bool others = false;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    others = others || (!name.starts_with(kDraft) && !name.starts_with(kPrefix) && name != kLock &&
                        name != kCommittingJob);
  }
  if (error) {
    return FailedPrecondition(
        fmt::format("cannot read the folder '{}': {}", path, error.message()));
  }
  if (others && directory.Cuts().empty()) {
    return FailedPrecondition(
               fmt::format("'{}' has files in it, and no checkpoints: it belongs to something else",
                           path))
        .Hint("name a folder that is only for the checkpoints of one job");
  }
  const std::string lock = fmt::format("{}/{}", path, kLock);
  directory.opener_->lock = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (directory.opener_->lock < 0) {
    return FailedPrecondition(
        fmt::format("cannot write into the folder '{}': {}", path, std::strerror(errno)));
  }
  if (!Lock(directory.opener_->lock)) {
    return FailedPrecondition(fmt::format("another job is writing checkpoints into '{}'", path))
        .Hint("a folder is used by one job at a time; SHOW JOBS lists what runs");
  }
  RemoveDrafts(path);  // of a process that died while writing
  return directory;
}

std::vector<uint64_t> CheckpointDirectory::Cuts() const {
  std::vector<uint64_t> cuts;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
    const std::string name = entry.path().filename().string();
    uint64_t cut = 0;
    if (name.starts_with(kPrefix)) {
      const char* end = name.data() + name.size();
      const auto [rest, failed] = std::from_chars(name.data() + kPrefix.size(), end, cut);
      if (failed == std::errc() && rest == end) {
        cuts.push_back(cut);
      }
    }
  }
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

std::string CheckpointDirectory::PathOf(uint64_t cut) const {
  return fmt::format("{}/{}{}", path_, kPrefix, cut);
}

Result<CheckpointDirectory::Draft> CheckpointDirectory::Begin() {
  RemoveDrafts(path_);  // one checkpoint is written at a time: the last one has failed
  const std::vector<uint64_t> cuts = Cuts();
  Draft draft;
  draft.cut = std::max(cuts.empty() ? 0 : cuts.back(), opener_->last) + 1;
  opener_->last = draft.cut;
  // Servers may still be writing for a master that died, but not into the next draft. Its name is
  // unique: the digests of its files begin with it.
  std::random_device random;
  const uint64_t unique = uint64_t{random()} << 32 | random();
  draft.path = fmt::format("{}/{}{}-{}-{:016x}", path_, kDraft, draft.cut, getpid(), unique);
  std::error_code error;
  if (!fs::create_directory(draft.path, error)) {
    return Unavailable(fmt::format("cannot create '{}': {}", draft.path, error.message()));
  }
  return draft;
}

Status CheckpointDirectory::Commit(const Draft& draft, CheckpointManifest manifest) {
  manifest.cut = draft.cut;
  const std::string path = fmt::format("{}/{}", draft.path, kManifest);
  ASSIGN_OR_RETURN(const std::string encoded, Encode(manifest));
  const std::string_view piece = encoded;
  RETURN_IF_ERROR(WriteDurably(path, std::span(&piece, 1)));
  RETURN_IF_ERROR(SyncFolder(draft.path));
  RETURN_IF_ERROR(RenameDurably(draft.path, PathOf(draft.cut)));
  return Prune();
}

Status CheckpointDirectory::Remove(uint64_t cut) const {
  // Renamed first, so that a half-removed folder is not mistaken for a checkpoint.
  const std::string old = fmt::format("{}/{}{}-old", path_, kDraft, cut);
  std::error_code error;
  fs::remove_all(old, error);
  fs::rename(PathOf(cut), old, error);
  if (!error) {
    fs::remove_all(old, error);
  }
  return error ? Unavailable(fmt::format("cannot remove the checkpoint '{}': {}", PathOf(cut),
                                         error.message()))
               : Status();
}

Status CheckpointDirectory::Prune() const {
  const std::vector<uint64_t> cuts = Cuts();
  for (size_t i = 0; keep_ > 0 && i + keep_ < cuts.size(); ++i) {
    RETURN_IF_ERROR(Remove(cuts[i]));
  }
  return Status();
}

// The newest last: after a crash in between, the rest can still be resumed. Then the job's number,
// which tells that it is not needed any more.
Status CheckpointDirectory::Clear() const {
  for (const uint64_t cut : Cuts()) {
    RETURN_IF_ERROR(Remove(cut));
  }
  RemoveDrafts(path_);
  const std::string committing_job = fmt::format("{}/{}", path_, kCommittingJob);
  if (unlink(committing_job.c_str()) != 0 && errno != ENOENT) {
    return SystemError("remove", committing_job);
  }
  return Status();
}

Status CheckpointDirectory::SetCommittingJob(int64_t job) const {
  const std::string draft = fmt::format("{}/{}{}", path_, kDraft, kCommittingJob);
  const std::string text = fmt::format("{}", job);
  const std::string_view piece = text;
  RETURN_IF_ERROR(WriteDurably(draft, std::span(&piece, 1)));
  return RenameDurably(draft, fmt::format("{}/{}", path_, kCommittingJob));
}

Result<std::optional<int64_t>> CheckpointDirectory::CommittingJob() const {
  const std::string path = fmt::format("{}/{}", path_, kCommittingJob);
  std::error_code error;
  if (!fs::exists(path, error)) {
    return std::optional<int64_t>();
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  int64_t job = 0;
  const auto [rest, failed] = std::from_chars(text.data(), text.data() + text.size(), job);
  if (failed != std::errc() || rest != text.data() + text.size()) {
    return Internal(fmt::format("'{}' does not hold the number of a job", path));
  }
  return std::optional<int64_t>(job);
}

Result<std::optional<CheckpointDirectory::Found>> CheckpointDirectory::Newest() const {
  Found found;
  const std::vector<uint64_t> cuts = Cuts();
  for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) {
    found.path = PathOf(*cut);
    Result<CheckpointManifest> manifest = ReadWhole(found.path);
    if (manifest.ok()) {
      found.manifest = std::move(*manifest);
      return std::optional<Found>(std::move(found));
    }
    found.damaged.push_back(fmt::format("{}: {}", found.path, manifest.status().message()));
  }
  if (cuts.empty()) {
    return std::optional<Found>();
  }
  return Internal(fmt::format("every checkpoint in '{}' is damaged", path_))
      .SqlState("XX001")
      .Detail(found.damaged.front())
      .Hint("empty the folder or name another: the training begins anew");
}

Result<std::optional<CheckpointDirectory::Found>> CheckpointDirectory::Newest(
    const std::string& model) const {
  ASSIGN_OR_RETURN(std::optional<Found> found, Newest());
  if (found.has_value() && found->manifest.model != model) {
    return FailedPrecondition(fmt::format("'{}' is a checkpoint of another model", found->path))
        .Detail(fmt::format("it is of {}; this is {}", found->manifest.model, model))
        .Hint("empty the folder or name another");
  }
  return found;
}

std::string DescribeCheckpoint(const CheckpointDirectory& directory,
                               const CheckpointDirectory::Draft& draft, int64_t steps,
                               uint64_t bytes) {
  return fmt::format("step {} in {} ({}{}, {} bytes)", steps, directory.path(), kPrefix, draft.cut,
                     bytes);
}

}  // namespace sluice::elastic
