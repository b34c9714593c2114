#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"

namespace sluice {

// Same numbers as grpc::StatusCode, so that crossing an RPC border is a cast.
enum class Code : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,  // the statement is wrong
  kDeadlineExceeded = 4,
  kNotFound = 5,  // the statement names something that does not exist
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,  // retryable by the user: disk, memory, connections
  kFailedPrecondition = 9,
  kAborted = 10,  // lost a race; retryable
  kUnimplemented = 12,
  kInternal = 13,     // an error in our own code
  kUnavailable = 14,  // the environment: a database or a process cannot be reached; retryable
};

// Half-open byte range in the text that the user sent. Invalid (no place) by default.
struct Span {
  int64_t begin = -1;
  int64_t end = -1;
  bool valid() const { return begin >= 0; }
  bool operator==(const Span&) const = default;
};

// One error as a user sees it: what is wrong, where, and what would be right.
struct Diagnostic {
  Code code = Code::kUnknown;
  std::string sqlstate;  // five characters; never empty once inside a Status
  std::string message;
  Span span;
  std::string detail;
  std::string hint;
};

// OK, or one or more Diagnostics (a binder reports every error of a statement at once).
// Cheap to copy; immutable after construction except through the && builders below.
class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(Code code, std::string message);

  bool ok() const { return diagnostics_ == nullptr; }
  Code code() const;                                   // of the first diagnostic
  const std::string& message() const;                  // of the first diagnostic
  const std::string& sqlstate() const;                 // of the first diagnostic
  const std::vector<Diagnostic>& diagnostics() const;  // empty when OK

  // Builders; they change the last diagnostic. Require !ok().
  Status At(Span span) &&;
  Status SqlState(std::string_view sqlstate) &&;
  Status Detail(std::string detail) &&;
  Status Hint(std::string hint) &&;
  // Puts `context: ` before every message.
  Status Because(std::string_view context) &&;

  // The same diagnostics, each at `place` instead of its own. OK stays OK.
  Status MovedTo(Span place) const;
  // For an error in a part of the text: shifts its places to count from the whole text's first
  // byte; a diagnostic without a place is at the part.
  Status Within(Span part) const;

  // Appends the diagnostics of `other` (nothing when it is OK).
  void Add(const Status& other);

  // One line per diagnostic: "ERROR 42703: no column 'clss' (did you mean 'class'?)".
  std::string ToString() const;

 private:
  Diagnostic& Last();
  std::shared_ptr<std::vector<Diagnostic>> diagnostics_;
};

inline Status OkStatus() {
  return Status();
}
Status InvalidArgument(std::string message);     // 22023
Status SyntaxError(std::string message);         // 42601
Status NotFound(std::string message);            // 42704
Status ColumnNotFound(std::string message);      // 42703
Status TableNotFound(std::string message);       // 42P01
Status AlreadyExists(std::string message);       // 42710
Status FailedPrecondition(std::string message);  // 55000
Status Unimplemented(std::string message);       // 0A000
Status Cancelled(std::string message);           // 57014
Status ResourceExhausted(std::string message);   // 53000
Status Unavailable(std::string message);         // 08006
Status Internal(std::string message);            // XX000

// The message with line, column and a caret under the place, as psql shows it:
//   ERROR 42703: no column 'clss'
//   LINE 2: LABEL clss INTO m
//                 ^
//   HINT: did you mean 'class'?
// One such block per diagnostic. `text` is what the spans point into.
std::string RenderWithCaret(const Status& status, std::string_view text);

// 1-based line and column (in characters, UTF-8) of a byte offset in `text`.
struct LineColumn {
  int line = 1;
  int column = 1;
};
LineColumn FindLineColumn(std::string_view text, int64_t offset);

// The candidate nearest to `name` (case-insensitive edit distance), or nullopt when none is near.
std::optional<std::string> NearestName(std::string_view name,
                                       const std::vector<std::string>& candidates);

// A value or an error. (A union: instantiating std::variant for each T took 7 % of the compiler's
// time.)
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by design
    SLUICE_CHECK(!status_.ok(), "a Result needs a value or an error");
  }
  Result(const Result& other) requires std::is_copy_constructible_v<T> : status_(other.status_) {
    if (ok()) {
      std::construct_at(&value_, other.value_);
    }
  }
  // What was moved from keeps its status, and so still has a value or an error.
  Result(Result&& other) noexcept : status_(other.status_) {
    if (ok()) {
      std::construct_at(&value_, std::move(other.value_));
    }
  }
  Result& operator=(Result other) noexcept {
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));
  }
  ~Result() {
    if (ok()) {
      std::destroy_at(&value_);
    }
  }

  bool ok() const { return status_.ok(); }
  Status status() const { return status_; }
  T& value() & {
    CheckOk();
    return value_;
  }
  const T& value() const& {
    CheckOk();
    return value_;
  }
  // By value, so that `for (const X& x : Function().value())` does not outlive what it reads.
  T value() && {
    CheckOk();
    return std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void CheckOk() const {
    if (!ok()) {
      CheckFailed(__FILE__, __LINE__, "Result::ok()", status_.ToString());
    }
  }
  Status status_;
  union {
    T value_;  // if status_ is OK
  };
};

}  // namespace sluice

#define RETURN_IF_ERROR(expression)                \
  do {                                             \
    ::sluice::Status status_of_it_ = (expression); \
    if (!status_of_it_.ok()) {                     \
      return status_of_it_;                        \
    }                                              \
  } while (false)

#define SLUICE_CONCAT_INNER(a, b) a##b
#define SLUICE_CONCAT(a, b) SLUICE_CONCAT_INNER(a, b)
#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_IMPL(SLUICE_CONCAT(result_, __LINE__), declaration, expression)
#define ASSIGN_OR_RETURN_IMPL(result, declaration, expression) \
  auto result = (expression);                                  \
  if (!result.ok()) {                                          \
    return result.status();                                    \
  }                                                            \
  declaration = std::move(result).value()
