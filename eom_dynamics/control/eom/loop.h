/* SPDX-License-Identifier: Apache-2.0
 *
 * C interface of the control loop, for foreign calls and for controllers; see eom/control_loop.hpp. Robots, settings and
 * vectors have the names from there. A function that returns a text returns an error message, or null. Times are ns of one
 * clock; quantities are in SI units. Call one function of a loop at a time; different loops may be used concurrently.
 * Exception: one other thread may call the functions with "post" in their name. */
#ifndef EOM_LOOP_H
#define EOM_LOOP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include "loop_parameters.hpp"
#include "robot_table.hpp"
typedef eom::RobotTable eom_robot;
typedef eom::Reason eom_reason;
typedef eom::LoopState eom_state;
extern "C" {
#else
typedef struct eom_robot eom_robot;
typedef struct eom_reason eom_reason;
typedef struct eom_state eom_state;
#endif

/* Exported symbols. Templates of the library are not exported, so that another library may contain its own. */
#pragma GCC visibility push(default)

typedef struct eom_loop eom_loop;
typedef void (*eom_kernel)(const double *const *inputs, double *const *outputs);

/* Digest of these headers. eom_loop_digest() returns the digest of the headers that the library was built from; do not use
 * the library if they differ. */
#define EOM_LOOP_DIGEST "@loop_digest@"
const char *eom_loop_digest(void);

/* --- A robot: parameters and kernels, eom/robot_table.hpp --------------------------------------------------------- */

eom_robot *eom_robot_make(size_t joints, size_t motors, size_t tools);
void eom_robot_free(eom_robot *robot);

/* Set numbers of the table, for example "lower.q", joints of the motors, or flags (0 or 1). The numbers are copied. */
const char *eom_robot_set(eom_robot *robot, const char *name, const double *numbers, size_t count);

/* Set the names of joints, or of motors with `joints` 0, for messages. The names are copied. */
void eom_robot_call(eom_robot *robot, int joints, const char *const *names, size_t count);

/* Append a kernel to a function such as "feedforward". Kernels run in the order of these calls. */
const char *eom_robot_add(eom_robot *robot, const char *function, eom_kernel kernel, const char *const *inputs,
                          size_t input_count, const char *const *outputs, size_t output_count);

/* --- Loop of a robot; free it before the robot -------------------------------------------------------------------- */

/* Returns null if the robot has more joints, motors or tools than the library supports. */
eom_loop *eom_loop_make(const eom_robot *robot);
void eom_loop_free(eom_loop *loop);

/* Sizes, bytes, of a loop and of its vector memory "given". */
size_t eom_loop_size(const eom_loop *loop);
size_t eom_setpoint_size(const eom_loop *loop);

/* Set a member of eom::LoopSettings (an enumerator by its number), or gains of eom::LoopParameters: a single number for all
 * motors or joints, or a number for each. The next eom_loop_configure() applies all settings; if a setting is out of range,
 * it changes nothing. */
const char *eom_loop_set(eom_loop *loop, const char *name, const double *numbers, size_t count);
const char *eom_loop_configure(eom_loop *loop);

/* Memory of a vector, at a constant address; null for an unknown name. To write: setpoints "given" and "posted", and
 * "measured" and "sensed" in drive units. To read: the present "setpoint" and its "command"; "sent", the drive command;
 * "exceeded", the last command beyond limits before it was clipped or refused; "released", the final command; the last
 * sample "observed", with "external", "tau" and "motor_effort". */
double *eom_loop_vector(eom_loop *loop, const char *whose, const char *name);

/* Select the measured quantities; write their vectors before each restart and cycle. */
void eom_loop_measure(eom_loop *loop, int links, int motors);

/* Process a sample of the vectors "sensed" at `time`, ns, in drive units. `sensors` is a sum of links 1, motors 2, joint
 * efforts 4, motor efforts 8. Cycles use the sample for 0.1 s if eom_loop_measure() selects nothing. Returns the eom::Sample
 * plus eight times the joint; a rejected sample leaves the last sample unchanged. */
int eom_loop_sense(eom_loop *loop, int64_t time, int sensors);

/* Restart at `now` (INT64_MAX: unknown) from the measured position, as far as it is finite. */
const char *eom_loop_restart(eom_loop *loop, int64_t now);

/* Compare the arm with its last command, and start the next motion from the measured position if the arm was moved: see
 * ControlLoop::locate(). Call it before planning, targets, stops and losses of the same cycle, and with `ends` before
 * "release". Returns 1 if the arm does not follow its commands. */
int eom_loop_locate(eom_loop *loop, int64_t now, int ends);

/* Set the given setpoint to rest at zero, with or without a base motion; returns its memory. */
void *eom_loop_rest(eom_loop *loop, int on_base);

/* Use the vector "given" as the reference of the next cycle; `stamp` in ns, 0 for no stamp. eom_loop_follow(): as the
 * reference of a chained controller that is `ahead` s early. */
void eom_loop_refer(eom_loop *loop, int64_t stamp);
void eom_loop_follow(eom_loop *loop, int64_t stamp, double ahead);

/* Use position and velocity of "given" as the target of a chained controller in the next cycle; NaN: keep the target. */
void eom_loop_pursue(eom_loop *loop);

/* Set the payload of a tool, effective from the next setpoint: inertial parameters P of a setpoint. */
const char *eom_loop_carry(eom_loop *loop, size_t tool, const double *parameters, double blend_time);

/* Set limits of the motion to targets, the numbers of eom::MotionLimits for each joint. Not during a motion to a target. */
const char *eom_loop_limit(eom_loop *loop, const double *limits, size_t joints);

/* Start the posted target ahead of the cycle at `now`, which would start it otherwise. Returns 0, or the eom::Refusal. */
int eom_loop_aim(eom_loop *loop, int64_t now);

/* Largest utilization of a limit in a joint stop from the last command: 1.2 if it needs 120 % of a limit, 0 without a command,
 * infinity if motors cannot realize the stop. Takes up to some milliseconds, and allocates. */
double eom_loop_stop_utilization(eom_loop *loop);

/* Plan the posted trajectory, or the queued one if its start has come, for cycles of `period` s, and play or queue it.
 * Returns 0, the eom::Refusal, or -1 if there is nothing to plan. */
int eom_loop_plan(eom_loop *loop, int64_t now, double period);

/* Delay the queued trajectory by `time` ns, for example while its clock stood still. Negative values start it earlier. */
void eom_loop_delay(eom_loop *loop, int64_t time);

/* Execute an action; returns null for a known action.
 * "halt": end active and queued motions at the last command.
 * "drop": cancel the queued trajectory if none is active; the active motion continues.
 * "stop": end active and queued motions, and stop the arm, whatever the settings.
 * "lose": respond to lost setpoints, by the settings.
 * "pause", "resume": pause or resume motions on their paths, from any thread. "resume" also accepts references again after
 * contact.
 * "release": write the vectors of the final command, before the loop is switched off.
 * "take": use the last posted setpoint as the reference, if it is new. */
const char *eom_loop_act(eom_loop *loop, const char *action);

/* Run one cycle. Returns the eom::Refusal of its reference, or 0 if it was accepted, with warnings -1 (command beyond
 * limits), -2 (failed stream check) or -3 (both). Plan trajectories before; eom_loop_run() plans them itself, and ends them
 * if the clock goes back. */
int eom_loop_update(eom_loop *loop, int64_t now, double period);
int eom_loop_run(eom_loop *loop, int64_t now, double period);

/* Memory and size of a vector. */
typedef struct {
    double *numbers;
    size_t count;
} eom_vector;

/* Process setpoints at `times`, ns, up to the first refusal. For each, copy a row of `given` into the vectors
 * `read`, run a cycle, and copy the vectors `written` to a row of `results`, and the result of the cycle to `codes`. Returns
 * the number of answered setpoints, including the refused one. */
size_t eom_loop_answer(eom_loop *loop, size_t count, const int64_t *stamps, const int64_t *times, const eom_vector *read,
                       size_t read_count, const double *given, const eom_vector *written, size_t written_count,
                       double *results, int *codes);

/* Weight of eom::Fade at a fraction of its duration: from 1 to 0. */
double eom_fade_weight(double fraction);

/* Set a member of eom::ExternalEffort, and restart the observer: "bandwidth", "order", "source" of each joint; "restart" only
 * restarts. Or set "speeds", "errors", "noise" of eom::ContactWatch: eom_loop_sense() then observes, and contact triggers the
 * reaction on_contact. */
const char *eom_observer_set(eom_loop *loop, const char *name, const double *numbers, size_t count);

/* Process sensor samples. `sensors` is a sum of links 1, motors 2, torque 4, motor efforts 8, payloads 16. For each sample,
 * copy a row of `given` into the vectors "sensed", and write external efforts of joints, motor residuals, positions and
 * velocities of joints, and the eom::Sample plus eight times the joint. */
void eom_observer_update(eom_loop *loop, size_t count, const double *times, int sensors, const eom_vector *read,
                         size_t read_count, const double *given, double *results, int *codes);

/* Returns a message, valid until the next call, "" for none. "refusal": reason why the last reference was refused; "finding":
 * last failed stream check; "overload": limit that a refused payload or target would exceed; "slowed": limit that slows the
 * motion to a target down. */
const char *eom_loop_text(eom_loop *loop, const char *what);

/* Get violation `number` of the last command beyond limits, before clipping; 0 is the worst. Returns joint or motor, quantity,
 * unit and remark, separated by 0x1f, or null if there are fewer violations. */
const char *eom_loop_violation(eom_loop *loop, size_t number, eom_reason *reason);

/* Write the present eom::LoopState; its size in bytes. */
size_t eom_state_size(void);
void eom_loop_state(const eom_loop *loop, eom_state *state);

/* Number of occurrences of an eom::Event in an eom::Phase, see eom/state_machine.hpp. */
size_t eom_loop_visits(const eom_loop *loop, int event, int phase);

/* --- From another thread ------------------------------------------------------------------------------------------ */

/* Set the setpoint "posted" to rest, as eom_loop_rest(); post it with a stamp, or 0, for the action "take". */
void eom_loop_post_rest(eom_loop *loop, int on_base);
void eom_loop_post(eom_loop *loop, int64_t stamp);

/* Post the pace of active motions on their paths, 0 to 1. */
const char *eom_loop_post_speed(eom_loop *loop, double factor);

/* Post the control mode, an eom::Mode. */
const char *eom_loop_post_mode(eom_loop *loop, int mode);

/* Post a trajectory for planning: `origin`, time of t = 0, ns (0: on arrival); knots, s; positions to snaps, each knots x
 * joints. Without knots, it stops the active trajectory. Joints with NaN positions keep their commanded positions. */
const char *eom_loop_post_spline(eom_loop *loop, int64_t origin, const double *knots, size_t count, const double *states);

/* Post a target: positions, velocities and accelerations (NULL: zero) of all joints; NaN: keep the target of a joint. Or post
 * a chunk: positions, knots x joints, NaN for joints that stay, at times, s, after `origin`, ns (0: on arrival). */
const char *eom_loop_post_target(eom_loop *loop, int64_t origin, const double *times, size_t knots, const double *positions,
                                 const double *velocities, const double *accelerations);

/* Post the payload of a tool: mass, center of mass, inertia about the center of mass as in eom::Body. */
const char *eom_loop_post_payload(eom_loop *loop, size_t tool, const double *body, double blend_time);

/* --- A simulated robot, without a loop: eom/plant.hpp ------------------------------------------------------------- */

typedef struct eom_plant eom_plant;

/* Returns null if the robot has no plant kernels. Gains are of drives with a position command, one per motor, SI units. */
eom_plant *eom_plant_make(const eom_robot *robot, const double *kp, const double *kd);
void eom_plant_free(eom_plant *plant);

/* Memory of a vector, null for an unknown name. "state": "q", "qd", "theta", "thetad" and "friction_state". "commanded" (NaN:
 * no command) and "reported": "drive_position", "drive_velocity" and "drive_effort" in drive units. */
double *eom_plant_vector(eom_plant *plant, const char *whose, const char *name);

/* Put the arm at rest at "q", and command the efforts that hold it there. */
void eom_plant_rest(eom_plant *plant);

/* Advance by `time` s in steps of at most `longest_step` s; returns 1 if the motion is finite. */
int eom_plant_advance(eom_plant *plant, double time, double longest_step);

/* --- Online trajectories, without a robot: eom/online_trajectory.hpp ---------------------------------------------- */

typedef struct eom_motion eom_motion;

/* Create a motion at rest at zero, with limits as numbers of eom::MotionLimits for each joint. Writes the delay of each joint
 * by the averages, s. */
const char *eom_motion_make(eom_motion **motion, const double *limits, size_t joints, double *delays);
void eom_motion_free(eom_motion *motion);

/* Continue from `states`, 5 x joints, and write the excess of each joint over limits; with `excess` null, start at rest at the
 * positions of `states`. */
void eom_motion_begin(eom_motion *motion, const double *states, double *excess);

/* Set a target or a chunk as eom_loop_post_target(), with times on the clock of eom_motion_step(); without positions, stop. */
const char *eom_motion_aim(eom_motion *motion, const double *times, size_t knots, const double *positions,
                           const double *velocities, const double *accelerations);

/* Run cycles, and write the states at their ends, cycles x 5 x joints; returns the time of all cycles so far, s. */
double eom_motion_step(eom_motion *motion, size_t cycles, double *states);

/* Returns 1 if all joints are at rest at their targets. */
int eom_motion_arrived(const eom_motion *motion);

#ifdef __cplusplus
}
#endif

#pragma GCC visibility pop

#endif
