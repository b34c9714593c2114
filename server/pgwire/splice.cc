#include <string_view>
#include <utility>

#include "server/pgwire/splice_internal.h"

namespace sluice::server::pgwire {
namespace {

// Consecutive reads of one connection before others have their turn.
constexpr int kReadsOfOne = 8;

}  // namespace

Splice::Splice(std::unique_ptr<Channel> one, std::unique_ptr<Channel> other,
               std::vector<char>& buffer, std::shared_ptr<const void> presence)
    : one_{std::move(one)},
      other_{std::move(other)},
      buffer_(buffer),
      presence_(std::move(presence)) {}

void Splice::Start() {
  Wait(one_, other_);
  Wait(other_, one_);
}

void Splice::Wait(End& from, End& to) {
  if (from.reading || to.writing || from.channel->closed()) {
    return;
  }
  from.reading = true;
  from.channel->WaitReadable([self = shared_from_this(), &from, &to](bool ok) {
    from.reading = false;
    if (!ok) {
      self->Close();
    } else if (!from.channel->closed()) {
      self->Read(from, to);
    }
  });
}

void Splice::Read(End& from, End& to) {
  for (int i = 0; i < kReadsOfOne && to.channel->unsent() == 0; ++i) {
    const ssize_t got = from.channel->Read(buffer_.data(), buffer_.size());
    if (got == 0) {
      break;
    }
    if (got < 0 || !to.channel->Write({buffer_.data(), static_cast<size_t>(got)})) {
      Close();
      return;
    }
    if (from.channel->drained()) {
      break;
    }
  }
  if (to.channel->unsent() > 0 && !to.writing) {
    to.writing = true;
    to.channel->WaitSent([self = shared_from_this(), &from, &to](bool ok) {
      to.writing = false;
      if (ok) {
        self->Wait(from, to);
      } else {
        self->Close();
      }
    });
  }
  Wait(from, to);
}

void Splice::Close() {
  one_.channel->Close();
  other_.channel->Close();
}

}  // namespace sluice::server::pgwire
