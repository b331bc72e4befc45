# SPDX-License-Identifier: Apache-2.0
"""Another node, with the robot in its parameters; in the first argument, how it answers for them.

parameters      as any node does
silent          not at all, though its services are there
ends            with the names, and ends when it is asked for the values
too_few_values  with the names, and no values
no_such_type    with values of a type that there is not
"""

import os
import sys
import time

import rclpy
from rcl_interfaces.msg import ParameterValue
from rcl_interfaces.srv import GetParameters, ListParameters


def names(_, response):
    response.result.names = ["robot_description", "robot_description_semantic", "use_sim_time"]
    return response


def values(mode):
    def answer(_, response):
        if mode == "ends":
            os._exit(1)
        if mode == "no_such_type":
            response.values = [ParameterValue(type=99)]
        return response

    return answer


def main():
    mode = sys.argv[1]
    rclpy.init()
    node = rclpy.create_node(
        "other",
        start_parameter_services=mode in ("parameters", "silent"),
        allow_undeclared_parameters=True,
        automatically_declare_parameters_from_overrides=True,
    )
    if mode not in ("parameters", "silent"):
        node.create_service(ListParameters, "~/list_parameters", names)
        node.create_service(GetParameters, "~/get_parameters", values(mode))
    if mode == "silent":
        time.sleep(1000)
    rclpy.spin(node)


main()
