#include <algorithm>

#include "catalog/sqlite/sqlite_pg_images_internal.h"

namespace sluice::catalog {
namespace {

// For a few users, and a few schemas of unfinished transactions; some 100 KiB each.
constexpr size_t kMaxImages = 16;

}  // namespace

std::shared_ptr<const PgImage> SharedCatalogs::Find(std::string_view key) {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(images_.begin(), images_.end(),
                                  [key](const auto& image) { return image.first == key; });
  if (found == images_.end()) {
    return nullptr;
  }
  std::rotate(found, std::next(found), images_.end());
  return images_.back().second;
}

void SharedCatalogs::Keep(std::string key, std::shared_ptr<const PgImage> image) {
  std::shared_ptr<const PgImage> oldest;  // freed outside the lock
  const MutexLock lock(mutex_);
  images_.emplace_back(std::move(key), std::move(image));
  if (images_.size() > kMaxImages) {
    oldest = std::move(images_.front().second);
    images_.erase(images_.begin());
  }
}

std::shared_ptr<SharedCatalogs> MakeSharedCatalogs() {
  return std::make_shared<SharedCatalogs>();
}

}  // namespace sluice::catalog
