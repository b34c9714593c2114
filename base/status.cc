#include "base/status.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "base/letter_case.h"
#include "base/utf8.h"

namespace sluice {
namespace {

const char* DefaultSqlState(Code code) {
  switch (code) {
    case Code::kOk:
      return "00000";
    case Code::kCancelled:
      return "57014";
    case Code::kInvalidArgument:
      return "22023";
    case Code::kDeadlineExceeded:
      return "57014";
    case Code::kNotFound:
      return "42704";
    case Code::kAlreadyExists:
      return "42710";
    case Code::kPermissionDenied:
      return "42501";
    case Code::kResourceExhausted:
      return "53000";
    case Code::kFailedPrecondition:
      return "55000";
    case Code::kAborted:
      return "40001";
    case Code::kUnimplemented:
      return "0A000";
    case Code::kUnavailable:
      return "08006";
    case Code::kUnknown:
    case Code::kInternal:
      break;
  }
  return "XX000";
}

Status MakeStatus(Code code, std::string message, std::string_view sqlstate) {
  return Status(code, std::move(message)).SqlState(sqlstate);
}

// Levenshtein distance, O(|a| |b|); both are identifiers, so short.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", file, line, condition, message.c_str());
  std::abort();
}

Status::Status(Code code, std::string message)
    : diagnostics_(std::make_shared<std::vector<Diagnostic>>()) {
  SLUICE_CHECK(code != Code::kOk, "an error needs a code");
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.sqlstate = DefaultSqlState(code);
  diagnostic.message = std::move(message);
  diagnostics_->push_back(std::move(diagnostic));
}

Code Status::code() const {
  return ok() ? Code::kOk : diagnostics_->front().code;
}

const std::string& Status::message() const {
  static const std::string empty;
  return ok() ? empty : diagnostics_->front().message;
}

const std::string& Status::sqlstate() const {
  static const std::string success = "00000";
  return ok() ? success : diagnostics_->front().sqlstate;
}

const std::vector<Diagnostic>& Status::diagnostics() const {
  static const std::vector<Diagnostic> none;
  return ok() ? none : *diagnostics_;
}

Diagnostic& Status::Last() {
  SLUICE_CHECK(!ok(), "OK has no diagnostics");
  if (diagnostics_.use_count() > 1) {  // copy on write: another Status shares it
    diagnostics_ = std::make_shared<std::vector<Diagnostic>>(*diagnostics_);
  }
  return diagnostics_->back();
}

Status Status::At(Span span) && {
  Last().span = span;
  return std::move(*this);
}
Status Status::SqlState(std::string_view sqlstate) && {
  Last().sqlstate = sqlstate;
  return std::move(*this);
}
Status Status::Detail(std::string detail) && {
  Last().detail = std::move(detail);
  return std::move(*this);
}
Status Status::Hint(std::string hint) && {
  Last().hint = std::move(hint);
  return std::move(*this);
}
Status Status::MovedTo(Span place) const {
  Status moved = *this;
  if (!ok()) {
    moved.diagnostics_ = std::make_shared<std::vector<Diagnostic>>(*diagnostics_);
    for (Diagnostic& diagnostic : *moved.diagnostics_) {
      diagnostic.span = place;
    }
  }
  return moved;
}

Status Status::Within(Span part) const {
  Status moved = MovedTo(part);
  for (size_t i = 0; i < diagnostics().size(); ++i) {
    if (const Span& span = (*diagnostics_)[i].span; span.valid()) {
      (*moved.diagnostics_)[i].span = {span.begin + part.begin, span.end + part.begin};
    }
  }
  return moved;
}

Status Status::Because(std::string_view context) && {
  if (!ok()) {
    Last();  // unshare
    for (Diagnostic& diagnostic : *diagnostics_) {
      diagnostic.message = fmt::format("{}: {}", context, diagnostic.message);
    }
  }
  return std::move(*this);
}

void Status::Add(const Status& other) {
  if (other.ok()) {
    return;
  }
  auto merged = std::make_shared<std::vector<Diagnostic>>(diagnostics());
  merged->insert(merged->end(), other.diagnostics_->begin(), other.diagnostics_->end());
  diagnostics_ = std::move(merged);
}

std::string Status::ToString() const {
  if (ok()) {
    return "OK";
  }
  std::string text;
  for (const Diagnostic& diagnostic : *diagnostics_) {
    if (!text.empty()) {
      text += '\n';
    }
    text += fmt::format("ERROR {}: {}", diagnostic.sqlstate, diagnostic.message);
    if (!diagnostic.detail.empty()) {
      text += fmt::format(" ({})", diagnostic.detail);
    }
    if (!diagnostic.hint.empty()) {
      text += fmt::format(" [{}]", diagnostic.hint);
    }
  }
  return text;
}

Status InvalidArgument(std::string message) {
  return Status(Code::kInvalidArgument, std::move(message));
}
Status SyntaxError(std::string message) {
  return MakeStatus(Code::kInvalidArgument, std::move(message), "42601");
}
Status NotFound(std::string message) {
  return Status(Code::kNotFound, std::move(message));
}
Status ColumnNotFound(std::string message) {
  return MakeStatus(Code::kNotFound, std::move(message), "42703");
}
Status TableNotFound(std::string message) {
  return MakeStatus(Code::kNotFound, std::move(message), "42P01");
}
Status AlreadyExists(std::string message) {
  return Status(Code::kAlreadyExists, std::move(message));
}
Status FailedPrecondition(std::string message) {
  return Status(Code::kFailedPrecondition, std::move(message));
}
Status Unimplemented(std::string message) {
  return Status(Code::kUnimplemented, std::move(message));
}
Status Cancelled(std::string message) {
  return Status(Code::kCancelled, std::move(message));
}
Status ResourceExhausted(std::string message) {
  return Status(Code::kResourceExhausted, std::move(message));
}
Status Unavailable(std::string message) {
  return Status(Code::kUnavailable, std::move(message));
}
Status Internal(std::string message) {
  return Status(Code::kInternal, std::move(message));
}

LineColumn FindLineColumn(std::string_view text, int64_t offset) {
  LineColumn place;
  const auto end = std::min(text.size(), static_cast<size_t>(std::max<int64_t>(offset, 0)));
  for (size_t i = 0; i < end; ++i) {
    if (text[i] == '\n') {
      ++place.line;
      place.column = 1;
    } else if (!ContinuesCharacter(text[i])) {
      ++place.column;
    }
  }
  return place;
}

std::string RenderWithCaret(const Status& status, std::string_view text) {
  // A statement may be one line of megabytes: show only as much as fits on a screen around the
  // place.
  constexpr size_t kShownBefore = 60;
  constexpr size_t kShownAfter = 60;
  std::string rendered;
  for (const Diagnostic& diagnostic : status.diagnostics()) {
    rendered += fmt::format("ERROR {}: {}\n", diagnostic.sqlstate, diagnostic.message);
    if (diagnostic.span.valid() && static_cast<size_t>(diagnostic.span.begin) <= text.size()) {
      const auto at = static_cast<size_t>(diagnostic.span.begin);
      const size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
      size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string lead;
      if (at - begin > kShownBefore) {
        begin = at - kShownBefore;
        while (begin < at && ContinuesCharacter(text[begin])) {
          ++begin;
        }
        lead = "...";
      }
      std::string shown(text.substr(begin, std::min(end, at + kShownAfter) - begin));
      std::replace(shown.begin(), shown.end(), '\t', ' ');
      std::replace(shown.begin(), shown.end(), '\0', ' ');
      const LineColumn place = FindLineColumn(text, diagnostic.span.begin);
      const std::string head = fmt::format("LINE {}:{}: {}", place.line, place.column, lead);
      size_t caret = head.size();
      for (size_t i = begin; i < at; ++i) {
        caret += ContinuesCharacter(text[i]) ? 0 : 1;
      }
      rendered += head + shown + "\n" + std::string(caret, ' ') + "^\n";
    }
    if (!diagnostic.detail.empty()) {
      rendered += fmt::format("DETAIL: {}\n", diagnostic.detail);
    }
    if (!diagnostic.hint.empty()) {
      rendered += fmt::format("HINT: {}\n", diagnostic.hint);
    }
  }
  return rendered;
}

std::optional<std::string> NearestName(std::string_view name,
                                       const std::vector<std::string>& candidates) {
  constexpr size_t kLongestName = 256;  // keeps a hostile name from taking quadratic time
  if (name.size() > kLongestName) {
    return std::nullopt;
  }
  const std::string wanted = LowerAscii(name);
  std::optional<std::string> nearest;
  size_t best = std::max<size_t>(2, wanted.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) {
      continue;
    }
    const std::string lower = LowerAscii(candidate);
    // `hidden_units` stands for `model.hidden_units`: a missing prefix counts as a near miss, too.
    const size_t dot = lower.rfind('.');
    const size_t distance = dot != std::string::npos && lower.substr(dot + 1) == wanted
                                ? 1
                                : EditDistance(wanted, lower);
    // Names without a letter in common are no near miss, however short they are.
    if (distance < best && distance < std::max(wanted.size(), lower.size())) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace sluice
