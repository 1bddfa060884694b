/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Gradients summed by a plan of `reckon plan`, for training programs. A process is one rank of the
 * plan: a worker, which computes gradients, or a server, which only sums.
 *
 *     reckon_options options = {sizeof options};
 *     options.plan = "plan.json";
 *     reckon_session* session = NULL;
 *     if (reckon_join(&options, &session) != RECKON_OK) { puts(reckon_error()); exit(1); }
 *     ... reckon_describe(), reckon_tensor(): where each gradient lies
 *     for each step:
 *       reckon_begin(session);                    before the backward pass, the earlier the better
 *       for each tensor, as the backward pass comes to it:
 *         ... write its gradient into the session's memory
 *         reckon_ready(session, tensor, 1);       it travels while the pass goes on
 *       reckon_wait(session, -1);                 now the memory holds the sums of all workers
 *     reckon_leave(session);
 *
 * A server does reckon_join(), reckon_serve(session, -1), reckon_leave().
 *
 * Threads. A session may be used by several threads at once. reckon_ready() and reckon_test() never
 * wait for what another thread waits for. reckon_leave() and reckon_abandon() free the session: no
 * other call may be under way or follow.
 *
 * Processes. The library sets no signal handlers (libfabric's shm provider does), never ends the
 * process and prints nothing but warnings, to standard error. A child of fork() must not use the
 * session: its calls are refused, and it keeps no connection of the parent's open. fork() during a
 * step is allowed; libfabric's verbs providers have limits of their own (fi_verbs(7)).
 */
#ifndef RECKON_RECKON_H
#define RECKON_RECKON_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RECKON_API __attribute__((visibility("default")))
#else
#define RECKON_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What calls return. Anything but RECKON_OK and RECKON_PENDING is an error: reckon_error() says
 *  what it was. 2, 3, 4 and 70 are the exit statuses of the program `reckon`. */
typedef enum reckon_status {
  RECKON_OK = 0,
  RECKON_PENDING = 1,     /**< not done yet; ask again */
  RECKON_INPUT = 2,       /**< an argument, the environment, a plan or a workload is wrong */
  RECKON_UNAVAILABLE = 3, /**< this machine or this build cannot do that */
  RECKON_FAILED = 4,      /**< something here that should have worked failed */
  RECKON_PEER = 5,        /**< another rank ended, or is not heard of; the text names it */
  RECKON_INTERNAL = 70    /**< a bug in reckon */
} reckon_status;

/** Element types of gradients. */
typedef enum reckon_dtype { RECKON_FP32 = 0, RECKON_FP16 = 1, RECKON_BF16 = 2 } reckon_dtype;

/** One rank of a job. */
typedef struct reckon_session reckon_session;

/** How to join. Set struct_bytes, zero the rest: each zero is a default. Texts are copied. */
typedef struct reckon_options {
  size_t struct_bytes; /**< sizeof(reckon_options) */
  const char* plan;    /**< file of `reckon plan`: an all-reduce in gradient order, without an
                            optimizer's step */
  /** The workload that the plan was made from: a file or a shipped name. NULL: the plan names it,
   *  and it is shipped or lies beside the plan. */
  const char* workload;
  const char* transport; /**< as `reckon run --transport`; NULL: the plan's */
  /** Where a worker has its gradients, aligned to 64, until the session ends. Transports that
   * cannot reach it copy (the report counts that). NULL: the session's own memory. */
  void* gradient;
  uint64_t gradient_bytes; /**< of `gradient`, if given: as many as the layout has */
  int average;             /**< not 0: the mean over all workers instead of the sum */
  int pin_lanes; /**< not 0: each lane's thread stays on one processor, as in `reckon run` */
  /** How long joining, and leaving once all have come to it, may take: up to 1e9; 0: 60. */
  double join_seconds;
  double peer_seconds; /**< a rank not heard of for so long is dead: 2 to 1e9; 0: 10 */
  /** Not 0: the tensors are the plan's parts in the order in which they lie, and no workload is
   *  needed: for data that have a size and no names. Each rank may choose. */
  int by_parts;
  /** 1: everything that crosses the network comes with a checksum of 32 bits, and a part that came
   *  with other bytes than were sent ends the job. At all ranks or at none; over tcp;ofi_rxm and
   *  shm. */
  int checksums;
} reckon_options;

/** What a session is. Set struct_bytes; reckon_describe() fills in the rest. */
typedef struct reckon_description {
  size_t struct_bytes; /**< sizeof(reckon_description) */
  int rank, size;      /**< of the job */
  int workers;         /**< ranks of the plan that have gradients */
  int worker;          /**< not 0: this rank is one of them; else it only sums: reckon_serve() */
  size_t tensors;      /**< in the gradient; numbered in gradient order, the order of the
                            backward pass */
  uint64_t gradient_bytes; /**< of a worker's gradient memory, gaps included */
  void* gradient;          /**< its start, aligned to 64; NULL at a rank that only sums. Zeroed at
                                the start where it is the session's own */
} reckon_description;

/** Where a tensor lies. */
typedef struct reckon_tensor_place {
  size_t struct_bytes;   /**< sizeof(reckon_tensor_place) */
  const char* name;      /**< the workload's; the session's text, valid until it ends */
  uint64_t offset_bytes; /**< in the gradient memory; tensors lie one after another, a multiple of
                              64 where the element type changes */
  uint64_t elements;
  reckon_dtype dtype;
} reckon_tensor_place;

/** The library's version: "0.1.0". */
RECKON_API const char* reckon_version(void);

/** What the last call of this thread that returned an error said: one line, never NULL. Valid until
 *  this thread's next call that returns an error. */
RECKON_API const char* reckon_error(void);

/**
 * Joins the job that a launcher has put this process into, as one rank of the plan, and returns
 * when all ranks have: gradient memory is there, registered and connected. The launcher says which
 * rank by RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (LOCAL_RANK, LOCAL_WORLD_SIZE,
 * RECKON_JOB_TOKEN) or PMIx, as for `reckon run`. RECKON_RANK, RECKON_WORLD_SIZE,
 * RECKON_MASTER_ADDR, RECKON_MASTER_PORT, RECKON_LOCAL_RANK and RECKON_LOCAL_WORLD_SIZE go before
 * those without prefix, for programs whose framework has taken these: a framework's world has no
 * servers, and listens on its port itself. A plan of one rank needs no launcher.
 *
 * All ranks must have the same plan, and all workers the same `average`.
 * @param options as described there
 * @param session out: the session; NULL on an error
 * @return RECKON_OK; RECKON_INPUT, also where the plan has an optimizer's step, is asynchronous, is
 *         no all-reduce, hides traffic behind the next forward pass (`--order priority`) or is for
 *         another number of ranks; RECKON_UNAVAILABLE: no such transport
 *         here; RECKON_PEER: a rank did not come within join_seconds, or ended
 */
RECKON_API reckon_status reckon_join(const reckon_options* options, reckon_session** session);

/**
 * reckon_join() for a program that wants to look at something in between, Ctrl-C for example. The
 * first call, with *session NULL, begins; after RECKON_PENDING call again, with the same session,
 * or give up by reckon_abandon(). A session that has not joined yet is good for nothing else.
 * @param session in and out: NULL, or what the call before left there; NULL on an error
 * @param seconds how long this call may take; negative: without a limit of its own
 * @return RECKON_PENDING: the time is over, and joining goes on; else as reckon_join()
 */
RECKON_API reckon_status reckon_join_within(const reckon_options* options, reckon_session** session,
                                            double seconds);

/** Fills in what the session is. Returns RECKON_OK, or RECKON_INPUT for another struct_bytes than
 *  this version's. */
RECKON_API reckon_status reckon_describe(reckon_session* session, reckon_description* description);

/** Fills in where tensor number `tensor` (from 0 on, in gradient order) lies. Returns RECKON_OK;
 *  RECKON_INPUT: there is no such tensor, or another struct_bytes than this version's. */
RECKON_API reckon_status reckon_tensor(reckon_session* session, size_t tensor,
                                       reckon_tensor_place* place);

/**
 * Begins a step at a worker: from now on reckon_ready() may be called, and the gradient memory of
 * this step may be written. Returns at once; the session waits by itself until all workers have
 * begun, however long that takes, so call this early: when the sums of the step before are used.
 * @return RECKON_OK; RECKON_INPUT: at a rank that only sums, or when the step before is not over
 *         (reckon_wait() has not returned RECKON_OK); any error that has ended the session
 */
RECKON_API reckon_status reckon_begin(reckon_session* session);

/**
 * The gradients of tensors first .. first + count - 1 are written: each starts on its way once
 * those before it in gradient order are ready as well. Until the step is over that memory must not
 * be touched. Another order than the workload's costs time, never correctness. Callable from any
 * thread; returns at once, but for the time of averaging and, where the transport cannot reach
 * options.gradient, copying the tensors.
 * @return RECKON_OK; RECKON_INPUT: no step has begun, there are no such tensors, or one of them is
 *         ready already (then none was marked)
 */
RECKON_API reckon_status reckon_ready(reckon_session* session, size_t first, size_t count);

/**
 * Gradients of this worker may be on a GPU from now on: reckon_ready_on_stream(). Once, between
 * steps. Registers the session's gradient memory with CUDA.
 * @param device number of the GPU as CUDA counts in this process
 * @return RECKON_OK; RECKON_UNAVAILABLE: no GPU, or the library was built without CUDA;
 *         RECKON_INPUT: no such GPU, a rank that only sums, a step under way, or a plan with
 *         fixed-point sums; RECKON_FAILED: CUDA refused something
 */
RECKON_API reckon_status reckon_use_gpu(reckon_session* session, int device);

/**
 * reckon_ready() for a gradient on the GPU: what is queued in `stream` so far makes it. The session
 * copies each part of the plan to its own memory when the stream has come here, sends it when it
 * has arrived, and copies its sum back to `gradient` when that is there. Returns at once. The
 * memory must stay, and must not be used until reckon_wait_on_stream() or reckon_wait(). In one
 * step some tensors may come this way and others by reckon_ready().
 * @param gradient elements of the tensor's type, one after another, in memory of that GPU; with
 *        options.average they are divided in place
 * @param stream a cudaStream_t of that GPU; NULL: the default stream
 * @return RECKON_OK; RECKON_INPUT as reckon_ready(), or reckon_use_gpu() was not called;
 *         RECKON_FAILED: CUDA refused something, and the job ends
 */
RECKON_API reckon_status reckon_ready_on_stream(reckon_session* session, size_t tensor,
                                                void* gradient, void* stream);

/**
 * Work queued in `stream` after this sees the sums, in the GPU's memory, of the tensors that
 * reckon_wait_for() has waited for in this step. The caller waits for nothing.
 * @return RECKON_OK; RECKON_INPUT: reckon_use_gpu() was not called; errors as reckon_wait()
 */
RECKON_API reckon_status reckon_follow_on_stream(reckon_session* session, void* stream);

/**
 * Once in a step, when all tensors are ready: work queued in `stream` after this sees the sums in
 * the GPU's memory, and the caller waits for nothing. The step is over, and the next may begin,
 * only when reckon_wait() returns RECKON_OK; call it before the next reckon_begin(). If the job
 * fails in between, reckon_wait() says so, and that work sees NaNs instead of the sums that did not
 * come. Without this call, reckon_wait() returns when the sums are in the GPU's memory.
 * @return RECKON_OK; RECKON_INPUT: some tensors are not ready, no step has begun, or
 *         reckon_use_gpu() was not called; errors as reckon_wait()
 */
RECKON_API reckon_status reckon_wait_on_stream(reckon_session* session, void* stream);

/**
 * Waits until the sums of tensors first .. first + count - 1 are in the session's memory, in the
 * middle of a step or after it. They stay there until the next reckon_begin().
 * @param seconds how long at most; negative: without a limit
 * @return RECKON_OK; RECKON_PENDING: the time is over; RECKON_INPUT: there are no such tensors, no
 *         step has begun, or this rank only sums; errors as reckon_wait()
 */
RECKON_API reckon_status reckon_wait_for(reckon_session* session, size_t first, size_t count,
                                         double seconds);

/** Whether the step is over. Waits for nothing. Returns as reckon_wait(session, 0). */
RECKON_API reckon_status reckon_test(reckon_session* session);

/**
 * Waits until the step is over: then the gradient memory holds the sums (or means) over all
 * workers, bit-identical at all of them, and is the caller's until the next reckon_begin(). A
 * caller that missed the answer, by a signal for one, may ask again.
 * @param seconds how long at most; negative: without a limit
 * @return RECKON_OK, also when no step is under way; RECKON_PENDING: the time is over and the step
 *         goes on; RECKON_INPUT: this rank only sums; RECKON_PEER: another rank ended (its text
 *         names rank and host), and no sum of this step may be used; RECKON_FAILED: the transport
 *         broke here
 */
RECKON_API reckon_status reckon_wait(reckon_session* session, double seconds);

/**
 * At a rank that only sums: takes part in all steps until all workers leave.
 * @param seconds how long this call may take; negative: without a limit
 * @return RECKON_OK: all workers are leaving, now call reckon_leave(); RECKON_PENDING: the time is
 *         over, call again (steps go on in between); RECKON_INPUT: this rank is a worker; errors as
 *         reckon_wait()
 */
RECKON_API reckon_status reckon_serve(reckon_session* session, double seconds);

/**
 * What this rank knows of the steps so far, as a JSON object (docs/library.md has its members):
 * seconds of each step, bytes sent and received, bytes that were copied, and the plan's prediction
 * beside the measured median.
 * @param json out: the text, valid until the next reckon_report() of the session or its end
 * @return RECKON_OK; also after an error has ended the session
 */
RECKON_API reckon_status reckon_report(reckon_session* session, const char** json);

/**
 * Leaves the job together with all other ranks and frees the session, whatever is returned. Waits
 * without a limit until all workers leave. After an error this is reckon_abandon(). NULL is
 * nothing.
 * @return RECKON_OK; RECKON_INPUT: a step is not over, or another worker has begun one that this
 *         rank does not take part in: the job ends for all
 */
RECKON_API reckon_status reckon_leave(reckon_session* session);

/**
 * The same for a program that wants to look at something in between. After RECKON_PENDING call
 * again, or reckon_abandon(); no step can begin any more.
 * @param session in and out: NULL afterwards, but for RECKON_PENDING
 * @param seconds how long this call may take; negative: without a limit
 * @return RECKON_PENDING: the time is over, and the others are waited for; else as reckon_leave()
 */
RECKON_API reckon_status reckon_leave_within(reckon_session** session, double seconds);

/**
 * Ends the job for all ranks, whose calls return RECKON_PEER with this rank, its host and `why`,
 * and frees the session. For a program that cannot go on. Takes two seconds at most. In a child of
 * fork() it only forgets the session. NULL is nothing.
 * @param why one line for people; NULL: "abandoned"
 */
RECKON_API void reckon_abandon(reckon_session* session, const char* why);

#ifdef __cplusplus
}
#endif

#endif
